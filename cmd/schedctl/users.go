package main

import (
	"fmt"

	"schedrestd/become/nss"
)

// users looks up names of users and groups in the databases of this machine.
type users struct{}

// User returns the name of uid, or its number if it has no name.
func (users) User(uid uint32) string {
	if u, err := nss.LookupUID(uid); err == nil {
		return u.Name
	}
	return fmt.Sprint(uid)
}

// Group returns the name of gid, or its number if it has no name.
func (users) Group(gid uint32) string {
	if g, err := nss.LookupGID(gid); err == nil {
		return g.Name
	}
	return fmt.Sprint(gid)
}
