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

// Numbers is a Users for a process that can't look up names.
type Numbers struct{}

// User returns "root" for 0, and any other uid in decimal.
func (Numbers) User(uid uint32) string { return formatID(uid) }

// Group returns "root" for 0, and any other gid in decimal.
func (Numbers) Group(gid uint32) string { return formatID(gid) }

func formatID(n uint32) string {
	if n == 0 {
		return "root"
	}
	return strconv.FormatUint(uint64(n), 10)
}

// noUser is the smaller of two numbers that are not the id of any user or
// group. In the RPC these numbers mean "not set" and "unlimited".
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

// empty returns the type of an object without members. Earlier versions of
// Slurm had members in it.
func empty() schema.Type[struct{}] {
	return schema.Simple(&schema.Shape{Kind: "object"},
		func(e schema.Encoder, _ *struct{}) {
			e.BeginObject()
			e.EndObject()
		}, nil)
}
