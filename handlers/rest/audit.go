package rest

import (
	"context"
)

// Audit writes a line to the audit log before each change.
type Audit interface {
	// Intend records a change before it is made. It returns when the line has
	// been written. If it returns an error, the caller must not make the
	// change. Otherwise the caller must make the change, and then call report
	// once.
	Intend(context.Context, Change) (report func(Result), err error)
}

// Change describes a change for the audit log before it is made.
type Change struct {
	Request       string // id of the request
	Forwarded     string // client address that a trusted proxy sent; "" for none
	User          string // user of the credential; "" if it has only a uid
	Local         bool   // whether the kernel identified the user, whose uid is UID
	UID           uint32
	ActAs         string // user to act as; "" if this is the user of the credential
	Method, Route string // "job/{job_id}"
	Object        string // changed object, as named by the client; "" for a new one
	Fields        string // names of the fields that the body sets, without values, separated by spaces
}

// Result is the result of a change.
type Result struct {
	Status  int    // of the answer to the client
	Code    string // "ok", or the error's code for programs
	Number  uint32 // Slurm's error number; 0 for none
	Objects string // created or changed objects
}
