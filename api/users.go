package api

import (
	"strconv"

	"schedrestd/api/schema"
)

// Users translates the ids of users and groups to names, because the scheduler
// often knows only the ids. An id that has no name is returned as a number.
type Users interface {
	User(uid uint32) string
	Group(gid uint32) string
}

// Numbers implements Users for a process that can't look up names.
type Numbers struct{}

// User returns uid in decimal, but 0 as root.
func (Numbers) User(uid uint32) string { return formatID(uid) }

// Group returns gid in decimal, but 0 as root.
func (Numbers) Group(gid uint32) string { return formatID(gid) }

func formatID(n uint32) string {
	if n == 0 {
		return "root"
	}
	return strconv.FormatUint(uint64(n), 10)
}

// noUser is the smaller of the two ids that no user or group has. In the RPC,
// they mean "not set" and "unlimited".
const noUser = 0xfffffffe

func userName(u Users, uid uint32) string {
	if uid >= noUser {
		return ""
	}
	return u.User(uid)
}

func groupName(u Users, gid uint32) string {
	if gid >= noUser {
		return ""
	}
	return u.Group(gid)
}

// empty returns the type of an object that had members in earlier versions of
// Slurm, and has none now.
func empty() schema.Type[struct{}] {
	return schema.Simple(&schema.Shape{Kind: "object"},
		func(e schema.Encoder, _ *struct{}) {
			e.BeginObject()
			e.EndObject()
		}, nil)
}
