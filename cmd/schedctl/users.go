package main

import (
	"fmt"

	"schedrestd/become/nss"
)

// users names users and groups by the databases of this machine.
type users struct{}

// User is the name of uid, else its number.
func (users) User(uid uint32) string {
	if u, err := nss.LookupUID(uid); err == nil {
		return u.Name
	}
	return fmt.Sprint(uid)
}

// Group is the name of gid, else its number.
func (users) Group(gid uint32) string {
	if g, err := nss.LookupGID(gid); err == nil {
		return g.Name
	}
	return fmt.Sprint(gid)
}
