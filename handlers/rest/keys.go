package rest

import "context"

// Keys stores the Idempotency-Keys of submissions, and the first answer for
// each key, for all workers.
type Keys interface {
	// Claim claims a key for a request. If the state is KeyFresh, the caller
	// must submit the job and then call settle once. In any other state it must
	// do neither. If Claim returns an error, the job must not be submitted.
	Claim(context.Context, KeyClaim) (state KeyState, answer []byte, settle func(KeyState, []byte), err error)
}

// KeyClaim is a request to claim an Idempotency-Key. All its fields are hashes.
type KeyClaim struct {
	Key  [32]byte // hash of the user and the key
	User [32]byte
	Body [32]byte // hash of the whole request
}

// KeyState is the state of an Idempotency-Key. It includes the outcome of the
// first request with the key.
type KeyState uint8

const (
	KeyFresh    KeyState = iota + 1 // the caller may carry out its request
	KeyRunning                      // another request with the key is being carried out
	KeyAnswered                     // the first request was answered
	KeyUnknown                      // the first request may have been carried out
	KeyOther                        // the key belongs to a different request
	KeyFull                         // no more keys can be stored at present
	KeyNotDone                      // the first request was not carried out, so the key is free
)

// MaxKept is the maximum length of a stored answer, in bytes.
const MaxKept = 1400
