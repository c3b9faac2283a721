// Package auth authenticates clients, by rest_auth/jwt (a token in a header)
// and rest_auth/local (the peer's uid on a UNIX socket). It also creates
// tokens, and verifies them for the daemons that hold the key.
//
// The gateway checks a token in two steps. First, Inspect checks its form,
// dates and claims, so that malformed tokens never reach the daemons. Second,
// the signature is verified, which needs the key. A gateway without the key
// asks the daemon that will serve the request. Before the token is known to be
// genuine, the gateway must not use the name in it. If this name selected a
// pool, cache or limit, a client could forge a token with another user's name
// and use the pool, cache or limit of that user.
//
// Two packages verify HS256 signatures, on purpose: the daemons use Verifier,
// and the gateway uses package keeper, which has a few lines of its own for
// this. The keeper holds the key on a machine that faces attackers. Package
// auth parses data from attackers, so it must not be linked into the keeper.
//
// Every refusal has the same public text, Refused, so that an attacker who
// guesses tokens learns nothing. The cause is wrapped for the log and never
// contains any part of a token.
package auth

import (
	"context"
	"fmt"
	"time"

	"schedrestd/errs"
)

// Refused is the whole public answer to a missing or invalid credential.
const Refused = "no valid credential was sent"

// Options holds the settings of the gateway that FromRequest and Inspect need.
type Options struct {
	JWT            bool             // rest_auth/jwt is served
	Local          bool             // rest_auth/local is served
	UID            uint32           // user of this process; local clients must have the same uid
	User           func() string    // returns the name of UID; "" if it has none
	UserClaimField string           // claim that may contain the user's name, in addition to sun and username
	Now            func() time.Time // nil for time.Now

	// Privileged reports whether requests must never be served as the given
	// user (require_user_name). A request is refused if it names such a user,
	// or if its token belongs to such a user and the request names no other
	// user. If Privileged is nil, no user is privileged. A proxy that holds
	// root's token may omit the user's name, may be made to remove it, or may
	// pass on a name that the client chose. Without this check, such a request
	// could be served as root.
	Privileged func(user string) bool
}

// timeOf returns now(), or the time of this machine's clock if now is nil.
func timeOf(now func() time.Time) time.Time {
	if now == nil {
		return time.Now()
	}
	return now()
}

// Peer is the other end of a connection, as the kernel reports it.
type Peer struct {
	Network  string // "unix", "tcp", or "stdio" when started by inetd
	UID, GID uint32 // SO_PEERCRED on "unix"; the owner of standard input on "stdio"
	PID      int32
	Verified bool   // UID and GID belong to one user; become.Ucred.Verify has checked them
	Addr     string // remote address on "tcp"
	Listener string // address on which the connection was accepted

	Forwarded string // client address that a trusted proxy sent; "" for none
	RequestID string // request id that a trusted proxy sent; "" for none
}

// String returns the peer's address or uid, for a log.
func (p Peer) String() string {
	if p.Network == "unix" || p.Network == "stdio" {
		return fmt.Sprintf("uid %d", p.UID)
	}
	return p.Addr
}

type peerKey struct{}

// WithPeer returns a copy of ctx that contains the peer of the request's
// connection.
func WithPeer(ctx context.Context, p Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}

// PeerFrom returns the peer that WithPeer has put into ctx. ok is false if ctx
// has no peer.
func PeerFrom(ctx context.Context) (p Peer, ok bool) {
	p, ok = ctx.Value(peerKey{}).(Peer)
	return p, ok
}

// Credential identifies the client of a request: a token, or a local user.
type Credential struct {
	Token    string // as sent; "" if Local
	ActAs    string // name sent with a token; "" stands for the token's own user
	Claims   Claims // claims of Token, not verified
	Local    bool   // the kernel reported the client's UID and GID
	UID, GID uint32

	proof *proof // what remains to be verified of Token; nil before Token is parsed
}

// tokenProof returns the parsed form of c's token.
func (c Credential) tokenProof() (*proof, error) {
	if c.proof != nil {
		return c.proof, nil
	}
	p, err := parse(c.Token)
	if err != nil {
		return nil, refuse("token: %w", err)
	}
	return p.proof(c.Token), nil
}

// User returns the user that the credential claims to belong to. It is for logs
// only, because it may be forged.
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

// String returns the user, so that a printed Credential shows no token.
func (c Credential) String() string { return c.User() }

// GoString returns the user, so that %#v shows no token either.
func (c Credential) GoString() string { return c.String() }

// refuse returns the error for an invalid credential. Its arguments must be
// texts and numbers of this program, never bytes that the client sent.
func refuse(format string, args ...any) error {
	return &errs.Error{Kind: errs.Unauthenticated, Message: Refused, Err: fmt.Errorf(format, args...)}
}
