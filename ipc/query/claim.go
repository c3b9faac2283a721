package query

import (
	"schedrestd/internal/keystate"
	"schedrestd/ipc"
)

// Claim claims an Idempotency-Key for a request. Key, User and Body are hashes,
// so that no key, user name or request body reaches the auditor or its file.
type Claim struct {
	ID   uint64 // chosen by the worker and never reused
	Key  [32]byte
	User [32]byte // hash of the user; keys are counted against this user's share of the file
	Body [32]byte // hash of the whole request
}

func (c *Claim) Walk(w *ipc.Walker) {
	w.Fields(&c.ID)
	w.Bytes(c.Key[:])
	w.Bytes(c.User[:])
	w.Bytes(c.Body[:])
}

// Claimed answers the Claim with the same ID. If State is keystate.Answered, Answer
// is the answer to the first request with the key.
type Claimed struct {
	ID     uint64
	State  keystate.State
	Answer []byte
}

func (c *Claimed) Walk(w *ipc.Walker) {
	w.Fields(&c.ID)
	ipc.Enum(w, &c.State, "claim", keystate.Fresh, keystate.Full)
	w.Blob(&c.Answer, keystate.MaxAnswer)
}

// Settle reports the result of a request with an Idempotency-Key. The field
// Claim is the ID of the message Claim for that request. State is
// keystate.Answered, keystate.Unknown or keystate.NotDone.
type Settle struct {
	ID     uint64 // chosen by the worker and never reused
	Claim  uint64
	State  keystate.State
	Answer []byte // for later requests with the key
}

func (s *Settle) Walk(w *ipc.Walker) {
	w.Fields(&s.ID, &s.Claim)
	ipc.Enum(w, &s.State, "claim", keystate.Answered, keystate.NotDone)
	w.Blob(&s.Answer, keystate.MaxAnswer)
}

// Settled answers the Settle with the same ID.
type Settled struct{ ID uint64 }

func (s *Settled) Walk(w *ipc.Walker) { w.Fields(&s.ID) }
