package nss

// PrivateGroup reports whether group is the one that bears its owner's name and has
// nobody else in it, as many systems give each user: what it may write, only the owner may.
func PrivateGroup(owner, group uint32) bool {
	u, err := LookupUID(owner)
	if err != nil || u.GID != group {
		return false
	}
	g, err := LookupGID(group)
	return err == nil && g.Name == u.Name && len(g.Members) == 0
}
