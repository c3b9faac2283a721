package nss

// PrivateGroup reports whether group has its owner's name and no other members,
// as on systems that give each user a group of their own. If it is true, only
// the owner can use the rights of the group.
func PrivateGroup(owner, group uint32) bool {
	u, err := LookupUID(owner)
	if err != nil || u.GID != group {
		return false
	}
	g, err := LookupGID(group)
	return err == nil && g.Name == u.Name && len(g.Members) == 0
}
