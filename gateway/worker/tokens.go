package worker

import (
	"context"
	"crypto/sha256"
	"io"
	"os"
	"sync/atomic"

	"schedrestd/auth"
	"schedrestd/gateway/worker/broker"
)

// Tokens verifies tokens. It uses public keys in the worker itself, or asks the
// keeper, which has the secret key. After the worker has called Build, the
// dispatcher sends it the public keys and a channel to the keeper.
type Tokens struct {
	keys          atomic.Pointer[publicKeys]
	keeper        *broker.Keeper
	authenticator *auth.Authenticator
	singleClient  bool // whether the worker serves only one client; if so, the parent does not watch the key files
}

// publicKeys is a key set that the dispatcher sent.
type publicKeys struct {
	set      *auth.KeySet
	followed bool // whether the parent reloads the file when it changes; if so, a token that the set does not verify is forged
}

// NewTokens returns Tokens that can't verify anything yet.
func NewTokens() *Tokens {
	t := &Tokens{keeper: broker.NewKeeper()}
	t.authenticator = &auth.Authenticator{RS256: t.verifyPublic, HS256: t.keeper.Verify}
	return t
}

// Authenticator returns the authenticator for the handlers. Until Tokens has
// keys, the authenticator asks the daemons to verify tokens.
func (t *Tokens) Authenticator() *auth.Authenticator { return t.authenticator }

// connect makes the descriptor fd the channel to the keeper. It also sends the
// keeper an invalid signature, because the keeper's answer shows whether its
// token key is outdated. A keeper always gives the same answer to this
// signature, so connect sends it only once.
func (t *Tokens) connect(fd int) error {
	if err := t.keeper.Connect(fd); err != nil {
		return err
	}
	go t.keeper.Verify(context.Background(), auth.Signature{Bytes: make([]byte, sha256.Size)})
	return nil
}

// problems returns the reasons why this worker can't use keys that it should
// have.
func (t *Tokens) problems() (list []string) {
	if t.keeper.IsLost() {
		list = append(list, "keys: the keeper exited; see the log")
	}
	if t.keeper.IsOutdated() {
		list = append(list, "keys: the file of jwt_key can't be used any more; see the log")
	}
	if keys := t.keys.Load(); keys != nil && !keys.followed && !t.singleClient {
		list = append(list, "keys: the file of jwks can't be used any more; see the log")
	}
	return list
}

// verifyPublic verifies a signature with the public keys.
func (t *Tokens) verifyPublic(_ context.Context, s auth.Signature) auth.Answer {
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

// load loads the public keys from the dispatcher. If this fails, this worker
// gets no connections. The gateway then keeps the previous generation, or does
// not start.
func (t *Tokens) load(f *os.File, followed bool) error {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, auth.MaxKeySet))
	if err != nil || len(data) == 0 { // no keys
		return err
	}
	set, err := auth.ParseKeySet(data)
	if err == nil {
		t.keys.Store(&publicKeys{set, followed})
	}
	return err
}
