package worker

import (
	"context"
	"io"
	"os"
	"sync/atomic"

	"schedrestd/auth"
)

// Tokens holds what this worker verifies tokens with: its own public keys, and
// a channel to the keeper, which has the secret key. The parent sends both
// after Build.
type Tokens struct {
	keys   atomic.Pointer[publicKeys]
	keeper *remote
	judge  *auth.Judge
}

// publicKeys is a key set that the parent sent.
type publicKeys struct {
	set      *auth.KeySet
	followed bool // the parent follows the file: a token that the set does not verify is forged, not signed with a newer key
}

// NewTokens returns Tokens that can't verify anything yet.
func NewTokens() *Tokens {
	t := &Tokens{keeper: newRemote()}
	t.judge = &auth.Judge{RS256: t.askKeys, HS256: t.keeper.verify}
	return t
}

// Judge returns the judge that handlers ask. Until keys arrive it can't decide,
// and the daemons verify tokens.
func (t *Tokens) Judge() *auth.Judge { return t.judge }

// askKeys verifies a signature with the public keys.
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

// use installs the public keys that the parent sends. After an error this worker
// gets no connections: the parent keeps the previous generation, or fails to start.
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
