package rest

import (
	"context"

	"schedrestd/internal/errs"
	"schedrestd/internal/keystate"
)

// Audit writes a line to the audit log before each change, and keeps the
// Idempotency-Keys of submissions, with the first answer for each key, for all
// workers.
type Audit interface {
	// Intend records a change before it is made, and claims its
	// Idempotency-Key. It returns when both have been written. If it returns an
	// error, which is a KeyError if the key is not free, the caller must not
	// make the change. Otherwise the caller must make the change, and then call
	// report once.
	Intend(context.Context, Change) (report func(Result), err error)

	// KeepsKeys reports whether Idempotency-Keys are kept. Otherwise, they are
	// refused.
	KeepsKeys() bool
}

// Change describes a change for the audit log before it is made.
type Change struct {
	Request       string // id of the request
	Forwarded     string // client address that a trusted proxy sent; "" for none
	User          string // user of the credential; "" if it has only a uid
	Local         bool   // whether the kernel identified the user, whose uid is UID
	UID           uint32
	Token         string    // id of the gateway token; "" for another credential
	ActAs         string    // user to act as; "" if this is the user of the credential
	Method, Route string    // "job/{job_id}"
	Object        string    // changed object, as named by the client; "" for a new one
	Fields        string    // names of the fields that the body sets, without values, separated by spaces
	Key           *KeyClaim // nil for no Idempotency-Key
}

// KeyClaim is the Idempotency-Key of a request. All its fields are hashes.
type KeyClaim struct {
	Key  [32]byte // hash of the user and the key
	User [32]byte
	Body [32]byte // hash of the whole request

	Search bool // the caller finds out whether the change of an earlier request was made, so the key is free if that is not known
}

// KeyError is the error of a change that must not be made because of its
// Idempotency-Key.
type KeyError struct {
	State  keystate.State
	Answer []byte // the first answer, if State is keystate.Answered
	Cause  error  // nil if State is the whole cause
}

func (e *KeyError) Error() string { return "the Idempotency-Key is not free" }
func (e *KeyError) Unwrap() error { return e.Cause }

// Result is the result of a change.
type Result struct {
	Status  int    // of the answer to the client
	Code    string // "ok", or the error's code for programs
	Number  uint32 // Slurm's error number; 0 for none
	Objects string // created or changed objects
	Answer  []byte // for later requests with the same Idempotency-Key; nil for none
}

// KeyState returns the state of the Idempotency-Key after the change.
func (r *Result) KeyState() keystate.State {
	switch {
	case r.Answer != nil:
		return keystate.Answered
	case r.Code == errs.OutcomeUnknown:
		return keystate.Unknown
	}
	return keystate.NotDone
}
