package worker

import (
	"context"
	"io"
	"os"
	"sync/atomic"

	"schedrestd/auth"
)

// Tokens is what this worker has to verify tokens with: public keys of its own, and a way to the keeper,
// which has the secret one. The parent brings both, later than Build.
type Tokens struct {
	keys   atomic.Pointer[publicKeys]
	keeper *remote
	judge  *auth.Judge
}

// publicKeys is a key set as it was brought.
type publicKeys struct {
	set      *auth.KeySet
	followed bool // what it does not verify is forged, and not made with a newer key
}

// NewTokens has nothing to verify with yet.
func NewTokens() *Tokens {
	t := &Tokens{keeper: newRemote()}
	t.judge = &auth.Judge{RS256: t.askKeys, HS256: t.keeper.verify}
	return t
}

// Judge is what handlers ask. Until keys are brought it knows nothing, and the daemons vouch.
func (t *Tokens) Judge() *auth.Judge { return t.judge }

// askKeys verifies with the public keys.
func (t *Tokens) askKeys(_ context.Context, s auth.Signature) auth.Answer {
	keys := t.keys.Load()
	if keys == nil {
		return auth.Unknown
	}
	answer := keys.set.Answer(s)
	if answer == auth.Bad && !keys.followed {
		return auth.Unknown
	}
	return answer
}

// use takes the public keys that the parent sends. A worker whose key set can't be used gets no connection: the
// parent keeps the generation before it, or does not start.
func (t *Tokens) use(f *os.File, followed bool) error {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, auth.MaxKeySet))
	if err != nil || len(data) == 0 { // none
		return err
	}
	set, err := auth.ParseKeySet(data)
	if err == nil {
		t.keys.Store(&publicKeys{set, followed})
	}
	return err
}
