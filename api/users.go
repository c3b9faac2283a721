package api

import (
	"strconv"

	"schedrestd/api/schema"
)

// Users translates the ids of users and groups to names, because the scheduler
// often knows only ids. For an id without a name it returns the id in decimal.
type Users interface {
	User(uid uint32) string
	Group(gid uint32) string
}

// Numbers implements Users for a process that can't look up names.
type Numbers struct{}

// User returns "root" for uid 0, and the decimal number for any other uid.
func (Numbers) User(uid uint32) string { return formatID(uid) }

// Group returns "root" for gid 0, and the decimal number for any other gid.
func (Numbers) Group(gid uint32) string { return formatID(gid) }

func formatID(n uint32) string {
	if n == 0 {
		return "root"
	}
	return strconv.FormatUint(uint64(n), 10)
}

// noUser and noUser+1 are not ids of any user or group. In Slurm's RPC, they
// mean "not set" and "unlimited".
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

// empty returns the type of an object without members. In earlier versions of
// Slurm, such an object had members.
func empty() schema.Type[struct{}] {
	return schema.Simple(&schema.Shape{Kind: "object"},
		func(e schema.Encoder, _ *struct{}) {
			e.BeginObject()
			e.EndObject()
		}, nil)
}
