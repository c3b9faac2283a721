// Package auth finds out who asks: rest_auth/jwt (a token in a header) and
// rest_auth/local (the kernel's word on a UNIX socket), and creates and verifies
// the tokens for the daemons that hold the key.
//
// At the gateway a token is judged in two steps. Inspect looks at its form, dates
// and claims, which costs no daemon anything and keeps garbage from them. Whether
// it is genuine only Verify can say, with the key; a gateway without one asks the
// daemon that will serve. Until then the name in a token is nothing: no pool, cache,
// limit or log identity may hang on it, or a forged token would share its victim's.
//
// An HS256 signature is verified in two places, on purpose: by Verifier in the daemons, and by package keeper at
// the gateway, with a few lines of its own. The keeper holds the key on a machine that faces strangers: this
// package, which parses what they send, is not to be linked into it.
//
// Every refusal has the one public text Refused, so that a guesser learns nothing;
// the cause is wrapped for the log and never holds any part of a token.
package auth

import (
	"context"
	"fmt"
	"time"

	"schedrestd/errs"
)

// Refused is all that a client is told about a credential that is missing or not good.
const Refused = "no valid credential was sent"

// Options is what FromRequest and Inspect need to know of the service.
type Options struct {
	JWT            bool             // rest_auth/jwt is served
	Local          bool             // rest_auth/local is served
	UID            uint32           // of this process, whom local clients must be
	User           func() string    // name of UID; "" when it has none
	UserClaimField string           // claim that may name the user besides sun and username
	Now            func() time.Time // nil: time.Now

	// Privileged reports whether no token may serve as this user
	// (require_user_name): neither one of the user's own without a name to act as,
	// nor one that names the user. nil: there is no such user. A proxy that holds
	// root's token and forgets the name, has it stripped, or passes on a name that
	// the client chose, is refused rather than served as root.
	Privileged func(user string) bool
}

// timeOf asks a clock; nil is this machine's.
func timeOf(now func() time.Time) time.Time {
	if now == nil {
		return time.Now()
	}
	return now()
}

// Peer is the other end of a connection as the kernel knows it.
type Peer struct {
	Network  string // "unix", "tcp", or "stdio" of an inetd run
	UID, GID uint32 // SO_PEERCRED on "unix"; on "stdio" the owner of standard input
	PID      int32
	Vouched  bool   // UID and GID may stand for a user: become.Ucred.Vouch has judged them, where they were read
	Addr     string // remote address on "tcp"
	Listener string // address it was accepted on

	Forwarded string // for whom a trusted proxy says that it asks, an address; "": it does not say, or is none
}

// String names the peer for a log: its address, or who it is.
func (p Peer) String() string {
	if p.Network == "unix" || p.Network == "stdio" {
		return fmt.Sprintf("uid %d", p.UID)
	}
	return p.Addr
}

type peerKey struct{}

// WithPeer returns ctx with the peer of the connection it belongs to.
func WithPeer(ctx context.Context, p Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}

// PeerFrom is the peer that WithPeer put into ctx; ok is false when there is none.
func PeerFrom(ctx context.Context) (p Peer, ok bool) {
	p, ok = ctx.Value(peerKey{}).(Peer)
	return p, ok
}

// Credential is who a request is made as: a token, or a local user.
type Credential struct {
	Token    string // as sent; "" when Local
	ActAs    string // name sent beside a token; "": the token's own user
	Claims   Claims // of Token, not verified
	Local    bool   // vouched for by the kernel as UID and GID
	UID, GID uint32

	proof *proof // of Token; nil when nobody has taken it apart yet
}

// takenApart is what c's token is judged by.
func (c Credential) takenApart() (*proof, error) {
	if c.proof != nil {
		return c.proof, nil
	}
	p, err := parse(c.Token)
	if err != nil {
		return nil, refuse("token: %w", err)
	}
	return p.proof(c.Token), nil
}

// User is whom the credential claims to be, for logs alone: it may be a lie.
func (c Credential) User() string {
	switch {
	case c.Local:
		return fmt.Sprintf("uid %d", c.UID)
	case c.Claims.User == "":
		return c.ActAs
	case c.ActAs != "" && c.ActAs != c.Claims.User:
		return c.ActAs + " by " + c.Claims.User
	}
	return c.Claims.User
}

// String shows no token, for whoever prints a Credential.
func (c Credential) String() string { return c.User() }

// GoString is String: %#v must not show the token either.
func (c Credential) GoString() string { return c.String() }

// refuse is the error of every credential that is not good. What it is given must
// be our own words and numbers, not the client's bytes.
func refuse(format string, args ...any) error {
	return &errs.Error{Kind: errs.Unauthenticated, Message: Refused, Err: fmt.Errorf(format, args...)}
}
