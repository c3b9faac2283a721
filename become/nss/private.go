package nss

// PrivateGroup reports whether group has its owner's name and no other members,
// as on systems that give each user a group: only the owner may write what the
// group may write.
func PrivateGroup(owner, group uint32) bool {
	u, err := LookupUID(owner)
	if err != nil || u.GID != group {
		return false
	}
	g, err := LookupGID(group)
	return err == nil && g.Name == u.Name && len(g.Members) == 0
}
