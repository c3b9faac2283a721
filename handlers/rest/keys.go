package rest

import (
	"context"

	"schedrestd/internal/keystate"
)

// Keys stores the Idempotency-Keys of submissions, and the first answer for
// each key, for all workers.
type Keys interface {
	// Claim claims a key for a request. If the state is keystate.Fresh, the
	// caller must submit the job and then call settle once. In any other state
	// it must do neither. If Claim returns an error, the job must not be
	// submitted.
	Claim(context.Context, KeyClaim) (state keystate.State, answer []byte, settle func(keystate.State, []byte), err error)
}

// KeyClaim is a request to claim an Idempotency-Key. All its fields are hashes.
type KeyClaim struct {
	Key  [32]byte // hash of the user and the key
	User [32]byte
	Body [32]byte // hash of the whole request
}
