package nss

// PrivateGroup reports whether group is the private group of the user with the
// uid owner. A private group is the primary group of its user, has the same
// name as the user, and has no other members. So only this user has the group's
// permissions. Many systems give each user such a group.
func PrivateGroup(owner, group uint32) bool {
	u, err := LookupUID(owner)
	if err != nil || u.GID != group {
		return false
	}
	g, err := LookupGID(group)
	return err == nil && g.Name == u.Name && len(g.Members) == 0
}
