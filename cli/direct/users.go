package main

import (
	"fmt"

	"schedrestd/become/nss"
)

// The type users looks up names of users and groups in the databases of this
// machine.
type users struct{}

// User returns the name of the user with the given uid, or the uid if no name
// is found.
func (users) User(uid uint32) string {
	if u, err := nss.LookupUID(uid); err == nil {
		return u.Name
	}
	return fmt.Sprint(uid)
}

// Group returns the name of the group with the given gid, or the gid if no name
// is found.
func (users) Group(gid uint32) string {
	if g, err := nss.LookupGID(gid); err == nil {
		return g.Name
	}
	return fmt.Sprint(gid)
}
