package nss

// PrivateGroup reports whether group is the private group of the user owner: it
// has the user's name, and no other members. Many systems give each user such a
// group. Only this user has the group's permissions.
func PrivateGroup(owner, group uint32) bool {
	u, err := LookupUID(owner)
	if err != nil || u.GID != group {
		return false
	}
	g, err := LookupGID(group)
	return err == nil && g.Name == u.Name && len(g.Members) == 0
}
