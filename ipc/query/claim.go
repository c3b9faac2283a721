package query

import "schedrestd/ipc"

// MaxClaimAnswer is the maximum length, in bytes, of an answer that is stored
// for an Idempotency-Key.
const MaxClaimAnswer = 1400

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

// ClaimState is the state of an Idempotency-Key, or the result of the request
// with that key.
type ClaimState uint8

// The states. Package gateway/auditor/claims stores them in its file.
const (
	ClaimFresh    ClaimState = iota + 1 // the key is claimed; a Settle must follow
	ClaimRunning                        // another request with the key is being answered
	ClaimAnswered                       // the request was answered
	ClaimUnknown                        // the request may have been carried out
	ClaimMismatch                       // the key was used before, for a different request
	ClaimFull                           // there is no room for another key now
	ClaimNotDone                        // the request was not carried out, and the key is free
)

// Claimed answers the Claim with the same ID. If State is ClaimAnswered, Answer
// is the answer to the first request with the key.
type Claimed struct {
	ID     uint64
	State  ClaimState
	Answer []byte
}

func (c *Claimed) Walk(w *ipc.Walker) {
	w.Fields(&c.ID)
	ipc.Enum(w, &c.State, "claim", ClaimFresh, ClaimFull)
	w.Blob(&c.Answer, MaxClaimAnswer)
}

// Settle reports the result of a request with an Idempotency-Key. The field
// Claim is the ID of the message Claim for that request. State is
// ClaimAnswered, ClaimUnknown or ClaimNotDone.
type Settle struct {
	ID     uint64 // chosen by the worker and never reused
	Claim  uint64
	State  ClaimState
	Answer []byte // for later requests with the key
}

func (s *Settle) Walk(w *ipc.Walker) {
	w.Fields(&s.ID, &s.Claim)
	ipc.Enum(w, &s.State, "claim", ClaimAnswered, ClaimNotDone)
	w.Blob(&s.Answer, MaxClaimAnswer)
}

// Settled answers the Settle with the same ID.
type Settled struct{ ID uint64 }

func (s *Settled) Walk(w *ipc.Walker) { w.Fields(&s.ID) }
