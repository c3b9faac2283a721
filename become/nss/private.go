package nss

// PrivateGroup reports whether group has the same name as the user owner and no
// other members, as on systems that give each user a group of their own. Then
// only this user has the permissions of the group.
func PrivateGroup(owner, group uint32) bool {
	u, err := LookupUID(owner)
	if err != nil || u.GID != group {
		return false
	}
	g, err := LookupGID(group)
	return err == nil && g.Name == u.Name && len(g.Members) == 0
}
