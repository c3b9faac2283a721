package worker

import (
	"context"
	"io"
	"log/slog"
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

// use takes the public keys that the parent brings. When they can't be used the daemons vouch for RS256 tokens. They
// judge the file too, and say what is wrong with it where an administrator looks.
func (t *Tokens) use(f *os.File, followed bool) {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, auth.MaxKeySet))
	if err == nil && len(data) == 0 {
		return // none
	}
	var set *auth.KeySet
	if err == nil {
		set, err = auth.ParseKeySet(data)
	}
	if err != nil {
		slog.Error("jwks= key set rejected; the daemons verify RS256 tokens", "error", err,
			"hint", "the daemons reject the file too; their log has the command that fixes it")
		return
	}
	t.keys.Store(&publicKeys{set, followed})
}
