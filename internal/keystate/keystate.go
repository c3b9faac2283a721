// Package keystate contains the states of an Idempotency-Key. Handlers, the
// messages between workers and the auditor, and the auditor's file use the same
// states.
package keystate

// State is the state of an Idempotency-Key. It includes the outcome of the
// first request with the key.
type State uint8

// The states. The auditor's file contains these numbers, so a number must not
// change its meaning.
const (
	None     State = iota // the request has no key
	Fresh                 // the caller has claimed the key, and may carry out its request
	Running               // another request with the key is being carried out
	Answered              // the first request was answered
	Unknown               // the first request may have been carried out
	Mismatch              // the key was used before, for a different request
	Full                  // no more keys can be stored at present
	NotDone               // the first request was not carried out, so the key is free
)

// MaxAnswer is the maximum length of an answer that is stored for a key, in
// bytes.
const MaxAnswer = 1400
