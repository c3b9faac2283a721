package nss

// PrivateGroup reports whether group is the private group of the user owner. A
// private group has the same name as its user, and no other members, so only
// this user has the group's permissions. Many systems give each user such a
// group.
func PrivateGroup(owner, group uint32) bool {
	u, err := LookupUID(owner)
	if err != nil || u.GID != group {
		return false
	}
	g, err := LookupGID(group)
	return err == nil && g.Name == u.Name && len(g.Members) == 0
}
