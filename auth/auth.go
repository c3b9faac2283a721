// Package auth authenticates clients with rest_auth/jwt (a token in a header)
// or rest_auth/local (the peer's uid on a UNIX socket). Package auth also
// creates tokens. The daemons that have the key also use this package to verify
// tokens.
//
// The gateway checks a token in two steps. First, Inspect checks the token's
// form, dates and claims, so that malformed tokens never reach the daemons.
// Second, the gateway verifies the signature with the key. A gateway without
// the key asks the daemon that will serve the request. Before the token is
// known to be genuine, the gateway must not use the name in it. For example, if
// the name selected a rate limit, a client with a forged token could use up the
// limit of another user.
//
// HS256 signatures are verified in two packages, on purpose. The daemons use
// Verifier. The gateway uses package keeper, which has a few lines of its own
// for this. The keeper process holds the key on a machine that faces attackers.
// So package auth, which parses data from attackers, must not be linked into
// the keeper.
//
// Every refusal has the same public text, Refused, so that an attacker who
// guesses tokens learns nothing. The cause is wrapped for the log and never
// contains any part of a token.
package auth

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/penalty"
)

// Refused is the whole public answer to a missing or invalid credential.
const Refused = "no valid credential was sent"

// Options holds the gateway's settings for FromRequest, Inspect and
// NewRejection.
type Options struct {
	JWT   bool             // rest_auth/jwt is served
	Local bool             // rest_auth/local is served
	UID   uint32           // user of this process; local clients must have the same uid
	User  func() string    // returns the name of UID; "" if it has none
	Hosts []string         // host names of this gateway, in lower case, that local clients may use in Host
	Rules Rules            // which claims of a token name the user
	Seen  *Seen            // tokens that need not be parsed again; all of them with these Rules; may be nil
	Now   func() time.Time // nil for time.Now

	// Privileged reports whether requests must never be served as the given
	// user (require_user_name). FromRequest refuses a token if the request
	// names such a user. If the request names no user, FromRequest refuses the
	// token of such a user. The uid is nil, unless the daemons take it from the
	// token. If Privileged is nil, no user is privileged. The
	// check protects a proxy that sends root's token and adds the client's user
	// name to each request. Such a proxy may omit the name, or pass on a name
	// that the client chose. Without the check, the request could then be
	// served as root.
	Privileged func(user string, uid *uint32) bool
}

// timeOf returns now(), or the current time if now is nil.
func timeOf(now func() time.Time) time.Time {
	if now == nil {
		return time.Now()
	}
	return now()
}

// Peer describes the process at the other end of a connection, as the kernel
// reports it. Forwarded and RequestID come from a trusted proxy instead.
type Peer struct {
	Network  string // "unix", "tcp", or "stdio" (in inetd mode)
	UID, GID uint32 // SO_PEERCRED on "unix"; the owner of standard input on "stdio"
	PID      int32
	Verified bool   // UID and GID can belong to a user of the cluster (become.Ucred.Verify)
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

// Source returns the part of String that a client can't choose: the address
// without the port, or the uid. Behind a trusted proxy, it is the address of the
// proxy's client.
func (p Peer) Source() string {
	text := cmp.Or(p.Forwarded, p.String())
	if addr, err := netip.ParseAddrPort(text); err == nil {
		return penalty.ClientAddr(addr.Addr()).String()
	}
	if addr, err := netip.ParseAddr(text); err == nil {
		return penalty.ClientAddr(addr).String()
	}
	return text
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

// Credential identifies the user of a request: by a token, or by the uid of a
// local client.
type Credential struct {
	Token    string // as sent; "" if Local
	ActAs    string // name sent with a token; "" stands for the token's own user
	Claims   Claims // claims of Token, not verified
	Local    bool   // the kernel reported the client's UID and GID
	UID, GID uint32

	proof *proof // the part of Token that remains to be verified; nil until Token is parsed
}

// tokenProof returns the proof of c's token, and parses the token if necessary.
func (c Credential) tokenProof() (*proof, error) {
	if c.proof != nil {
		return c.proof, nil
	}
	p, err := parse(c.Token)
	if err != nil {
		return nil, refuse("token: %w", err)
	}
	return p.proof(hashOf(c.Token)), nil
}

// Signature returns the signature of c's token, and whether it is that of a gateway
// token. If ok is false, c has no token.
func (c Credential) Signature() (s Signature, gateway, ok bool) {
	p, err := c.tokenProof()
	if c.Local || err != nil {
		return s, false, false
	}
	return p.Signature, p.gateway, true
}

// User returns the user that the credential claims, as a text. The claim may be
// forged. Until the credential is authenticated, the text is only for logs.
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

// refuse returns the error for an invalid credential. The arguments must be
// this program's own texts and numbers, never bytes that the client sent.
func refuse(format string, args ...any) error {
	return &errs.Error{Kind: errs.Unauthenticated, Message: Refused, Err: fmt.Errorf(format, args...)}
}
