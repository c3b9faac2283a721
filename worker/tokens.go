package worker

import (
	"context"
	"io"
	"log/slog"
	"os"
	"sync/atomic"

	"schedrestd/auth"
	"schedrestd/ipc"
)

// Tokens is what this worker has to verify tokens with: public keys of its own, and a way to the keeper,
// who has the secret one. The parent brings both, later than Build, and newer ones at any time.
type Tokens struct {
	keys   atomic.Pointer[publicKeys]
	keeper *remote
	judge  *auth.Judge
}

// publicKeys is a key set as it was brought.
type publicKeys struct {
	set      *auth.KeySet // nil: none
	followed bool         // what it does not verify is forged, and not made with a newer key
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

// hear takes the public keys that the parent brings. When they can't be used those before them stay, which
// are not the newest any more: what they don't verify is for the daemons to judge. They judge the
// file too, and say what is wrong with it where an administrator looks.
func (t *Tokens) hear(fd int, m *ipc.JWKSFD) {
	f := os.NewFile(uintptr(fd), "key set")
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, 0, auth.MaxKeySet))
	var set *auth.KeySet
	if err == nil && len(data) > 0 {
		set, err = auth.ParseKeySet(data)
	}
	if err != nil {
		stays := "there is none before it: the daemons vouch for all RS256 tokens"
		if old := t.keys.Load(); old != nil && old.set != nil {
			t.keys.Store(&publicKeys{set: old.set})
			stays = "the one before it stays: the daemons vouch for RS256 tokens that it does not verify"
		}
		slog.Error("the key set that jwks= names is not used; "+stays, "error", err,
			"hint", "the daemons' log has the command that mends the file, which they refuse as well")
		return
	}
	t.keys.Store(&publicKeys{set, m.Followed})
	t.judge.ForgetAll()
}
