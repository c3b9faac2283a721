// Package keys has the keys of a worker's generation, which the dispatcher sends
// after the worker has dropped its privileges: the certificates for TLS, the
// public keys of tokens, and a channel to the keeper, which has the secret keys.
package keys

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"io"
	"os"
	"sync/atomic"

	"schedrestd/auth"
	"schedrestd/auth/jose"
	"schedrestd/gateway/worker/broker"
)

// Keys verifies tokens and makes TLS connections. A token is verified with
// public keys in the worker itself, or by the keeper.
type Keys struct {
	// SingleClient is set if the worker serves only one client. The parent then
	// does not watch the key files.
	SingleClient bool

	public        atomic.Pointer[publicKeys] // nil without keys for tokens
	keeper        *broker.Keeper
	gateway       *gatewayTokens
	stamper       *broker.Stamper // nil: gateway tokens are exchanged
	authenticator *auth.Authenticator
	tls           atomic.Pointer[serverTLS] // nil without a certificate
	certUnusable  atomic.Bool               // whether a certificate is configured but can't be used
	retired       atomic.Bool               // see Retire
}

// serverTLS is what the worker needs for https:// listeners, except for the
// private key, which only the keeper has.
type serverTLS struct {
	config *tls.Config
	leaf   *x509.Certificate
}

// publicKeys is a key set that the dispatcher sent.
type publicKeys struct {
	set      *auth.KeySet
	followed bool // whether the parent reloads the file when it changes; if so, a token that the set does not verify is forged
}

// New returns Keys that can't verify anything yet.
func New() *Keys {
	k := &Keys{keeper: broker.NewKeeper()}
	k.gateway = &gatewayTokens{keeper: k.keeper}
	k.authenticator = &auth.Authenticator{RS256: k.verifyPublic, HS256: k.verifySecret, Gateway: k.gateway.answer}
	return k
}

// Authenticator returns the authenticator for the handlers. Until there are
// keys, the authenticator asks the daemons to verify tokens.
func (k *Keys) Authenticator() *auth.Authenticator { return k.authenticator }

// Voucher returns the keeper as what vouches for the users of tokens, or nil if
// none is needed.
func (k *Keys) Voucher(needed bool) *broker.Keeper {
	if !needed {
		return nil
	}
	return k.keeper
}

// Tokens returns what manages gateway tokens.
func (k *Keys) Tokens() Tokens { return Tokens{k.keeper} }

// Connect makes the descriptor fd the channel to the keeper. It also sends the
// keeper an invalid signature, because the keeper's answer shows whether its
// token key is outdated. A keeper always gives the same answer to this
// signature, so Connect sends it only once.
func (k *Keys) Connect(fd int) error {
	if err := k.keeper.Connect(fd); err != nil {
		return err
	}
	go k.keeper.Verify(context.Background(), auth.Signature{Bytes: make([]byte, sha256.Size)})
	return nil
}

// Retire records that other workers have newer keys. From now on, a daemon decides
// about each token that this worker's keys do not verify. Otherwise a client with a
// token of a new key would get 401 on a connection that it has kept.
func (k *Keys) Retire() { k.retired.Store(true) }

// loadTokenKeys loads the public keys from the dispatcher. If this fails, this worker
// gets no connections. The gateway then keeps the previous generation, or does
// not start.
func (k *Keys) loadTokenKeys(f *os.File, followed bool) error {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, jose.MaxKeySet))
	if err != nil || len(data) == 0 { // no keys
		return err
	}
	set, err := auth.ParseKeySet(data)
	if err == nil {
		k.public.Store(&publicKeys{set, followed})
	}
	return err
}

// verifyPublic verifies a signature with the public keys.
func (k *Keys) verifyPublic(_ context.Context, s auth.Signature) auth.Answer {
	public := k.public.Load()
	if public == nil {
		return auth.Unknown
	}
	answer := public.set.Answer(s)
	if answer == auth.Bad && (!public.followed || k.retired.Load()) {
		return auth.Unknown
	}
	return answer
}

// verifySecret asks the keeper to verify a signature.
func (k *Keys) verifySecret(ctx context.Context, s auth.Signature) auth.Answer {
	answer := k.keeper.Verify(ctx, s)
	if answer == auth.Bad && k.retired.Load() {
		return auth.Unknown
	}
	return answer
}
