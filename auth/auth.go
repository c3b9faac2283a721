// Package auth authenticates clients, by rest_auth/jwt (a token in a header)
// and rest_auth/local (the peer's uid on a UNIX socket). It also creates
// tokens, and verifies them for the daemons that hold the key.
//
// The gateway checks a token in two steps. Inspect checks its form, dates and
// claims, which keeps malformed tokens away from the daemons. Only Verify, with
// the key, can show that the token is genuine; a gateway without the key asks
// the daemon that will serve the request. Until then the name in a token must
// not be used: if a pool, cache, limit or log identity depended on it, a forged
// token would share its victim's.
//
// HS256 signatures are verified in two places, on purpose: by Verifier in the
// daemons, and by package keeper at the gateway, with a few lines of its own.
// The keeper holds the key on a machine that faces attackers. This package
// parses what they send, so it must not be linked into the keeper.
//
// Every refusal has the same public text, Refused, so that an attacker who
// guesses learns nothing. The cause is wrapped for the log and never contains
// any part of a token.
package auth

import (
	"context"
	"fmt"
	"time"

	"schedrestd/errs"
)

// Refused is the whole public answer to a missing or invalid credential.
const Refused = "no valid credential was sent"

// Options is what FromRequest and Inspect need to know of the gateway.
type Options struct {
	JWT            bool             // rest_auth/jwt is served
	Local          bool             // rest_auth/local is served
	UID            uint32           // of this process; local clients must have the same
	User           func() string    // name of UID; "" when it has none
	UserClaimField string           // claim that may name the user, apart from sun and username
	Now            func() time.Time // nil: time.Now

	// Privileged reports whether tokens must not act as this user
	// (require_user_name): neither the user's own token without a name to act
	// as, nor a token that names the user. nil: there is no such user. A proxy
	// that holds root's token may forget the name, have it stripped, or pass on
	// a name that the client chose. Such a request is refused rather than
	// served as root.
	Privileged func(user string) bool
}

// timeOf returns the time of a clock; nil is this machine's.
func timeOf(now func() time.Time) time.Time {
	if now == nil {
		return time.Now()
	}
	return now()
}

// Peer is the other end of a connection, as the kernel reports it.
type Peer struct {
	Network  string // "unix", "tcp", or "stdio" of an inetd run
	UID, GID uint32 // SO_PEERCRED on "unix"; on "stdio" the owner of standard input
	PID      int32
	Verified bool   // UID and GID belong to a user: become.Ucred.Verify checked them where they were read
	Addr     string // remote address on "tcp"
	Listener string // address it was accepted on

	Forwarded string // client address that a trusted proxy sent; "" when there is none
	RequestID string // id of the request that a trusted proxy sent; "" when there is none
}

// String returns the peer's address or uid, for a log.
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

// PeerFrom returns the peer that WithPeer put into ctx; ok is false when there
// is none.
func PeerFrom(ctx context.Context) (p Peer, ok bool) {
	p, ok = ctx.Value(peerKey{}).(Peer)
	return p, ok
}

// Credential identifies the client of a request: a token, or a local user.
type Credential struct {
	Token    string // as sent; "" when Local
	ActAs    string // name sent beside a token; "": the token's own user
	Claims   Claims // of Token, not verified
	Local    bool   // the kernel reported UID and GID
	UID, GID uint32

	proof *proof // of Token; nil before it is parsed
}

// takenApart returns the parsed form of c's token.
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

// User returns whom the credential claims to be, for logs only: it may be
// forged.
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

// String returns User, so that printing a Credential shows no token.
func (c Credential) String() string { return c.User() }

// GoString returns String: %#v must not show the token either.
func (c Credential) GoString() string { return c.String() }

// refuse returns the error of an invalid credential. The arguments must be our
// own words and numbers, not bytes of the client.
func refuse(format string, args ...any) error {
	return &errs.Error{Kind: errs.Unauthenticated, Message: Refused, Err: fmt.Errorf(format, args...)}
}
