package auth

import (
	"context"
	"errors"
	"time"

	"schedrestd/internal/errs"
)

// An Authenticator decides whether a credential is genuine, and whether its user
// exists. The gateway asks the Authenticator before it does any work for the
// client.
//
// If the Authenticator has the key, it verifies the signature. Otherwise it
// asks the daemon that will serve the request. Then it looks up the user. If the
// request acts as another user, it finally asks the daemon about this, because
// only the daemon decides whether the token's user may do so. About a gateway token
// the keeper decides all of this. If the daemon
// accepts the token, the Authenticator remembers this for at most a minute. The
// remembered answer is valid only for the same daemon, the same token, and the
// same user name to act as.
//
// The user is looked up only after the token was verified: otherwise anyone
// could make the gateway look up names, each of which may start a process and
// cause a request to the site's directory. Without a key, this means that a
// daemon may be asked to verify a token whose own user does not exist. It is
// asked with a ping, which neither shows nor changes anything. The name of
// another user to act as never reaches a daemon before it was looked up.
//
// The daemon also verifies every request itself. So the Authenticator grants no
// rights: it only keeps the gateway from doing work for attackers.
//
// The zero Authenticator has no key. An Authenticator is safe for concurrent
// use.
type Authenticator struct {
	HS256 func(context.Context, Signature) Answer // nil if the key is not available to this process
	RS256 func(context.Context, Signature) Answer // nil if this process has no key set
	Now   func() time.Time                        // nil for time.Now

	// Gateway decides about gateway tokens, and whether one acts as the user actAs
	// ("" if the request names none). Its answers are not remembered here,
	// because such a token can be revoked at any time. If it is nil, or does not
	// know, they are refused: no daemon knows them.
	Gateway func(ctx context.Context, s Signature, actAs string) Answer

	// UserID returns the uid of the user called name, as whom the request with the
	// verified credential c is to be carried out. Its errors are NotFound, or the
	// reason why the user could not be looked up. If UserID is nil, only the
	// daemons know the users.
	UserID func(ctx context.Context, c Credential, name string) (uint32, error)

	// PassUnknown accepts users that UserID does not find: the daemons decide about
	// them. UserID is then used only to check the uid in a token.
	PassUnknown bool

	// Excuse is called before a request with a verified token is refused because of
	// its user, or because the token has been revoked. The client has not guessed the
	// token. May be nil.
	Excuse func(ctx context.Context)

	genuine   memory[hash]       // tokens whose signature this process has verified
	accepted  memory[acceptance] // tokens that daemons accepted
	refused   memory[acceptance] // tokens that daemons rejected less than a second ago
	questions questions
}

// An acceptance is the map key under which a daemon's decision is remembered.
// actAs is the name of the user that the request acts as, or "".
type acceptance struct {
	daemon string
	token  hash
	actAs  string
}

// Signature holds the parts of a token that are needed to verify it.
type Signature struct {
	KeyID  string // kid of the token's header; "" for none
	Signed string // the signed text: header and payload
	Bytes  []byte
}

// ErrNotInScope means that a gateway token does not permit a message to a daemon.
var ErrNotInScope = errors.New("not in the scopes of the token")

// Answer is the result of verifying a signature.
type Answer uint8

// The answers.
const (
	Unknown Answer = iota // this process could not verify the signature, for example because it has no key
	Good
	Bad
	Revoked    // the signature is genuine, but the token has been revoked
	NotForUser // the gateway token is genuine, but does not act for the user that the request names
)

// Authenticate returns nil if c is genuine and its user exists. A local client
// is always accepted, because FromRequest has already checked the peer's uid. A
// token is verified with a key of this process. If no key can decide, or if the
// request acts as another user, the named daemon is asked. The error is
// errs.Unauthenticated, or the reason why the daemon could not be asked or the
// user could not be looked up.
//
// To ask the daemon, Authenticate calls ask, which must send the daemon a cheap
// request that acts as the user actAs, or as the token's own user if actAs is "".
// Concurrent requests with the same credential for the same daemon share one
// such call.
func (a *Authenticator) Authenticate(ctx context.Context, c Credential, daemon string, ask func(ctx context.Context, actAs string) error) error {
	if c.Local {
		return nil
	}
	p, err := c.tokenProof()
	if err != nil {
		return err
	}
	now := timeOf(a.Now)
	if p.gateway {
		if err := a.checkGateway(ctx, p, c.ActAs); err != nil {
			return err
		}
	} else if own := (acceptance{daemon, p.hash, ""}); !a.accepted.has(own, now) {
		good, err := a.verifiedByKey(ctx, p, c.Claims.Expires, now)
		if err == nil && !good {
			err = a.askDaemon(ctx, own, c.Claims.Expires, now, ask)
		}
		if err != nil {
			return err
		}
	}
	err = a.checkUser(ctx, c)
	if errs.KindOf(err) == errs.Unauthenticated && a.Excuse != nil {
		a.Excuse(ctx)
	}
	if err != nil || p.gateway || c.ActAs == "" || c.ActAs == c.Claims.User {
		return err
	}
	return a.askDaemon(ctx, acceptance{daemon, p.hash, c.ActAs}, c.Claims.Expires, now, ask)
}

// checkGateway returns an error if a gateway token is not genuine, or revoked, or
// does not act as the user that the request names, or if that can't be decided at
// present.
func (a *Authenticator) checkGateway(ctx context.Context, p *proof, actAs string) error {
	answer := Unknown
	if a.Gateway != nil {
		answer = a.Gateway(ctx, p.Signature, actAs)
	}
	switch answer {
	case Good:
		return nil
	case Bad:
		return refuse("gateway token: wrong signature")
	case Revoked:
		if a.Excuse != nil {
			a.Excuse(ctx)
		}
		return refuse("gateway token: revoked")
	case NotForUser:
		return NotActingFor("not a member of its group, or a user of the system")
	}
	return errs.New(errs.Unavailable, "gateway tokens can't be verified at present").WithHint("the administrator finds the reason in the gateway's log")
}

// NotActingFor returns the error for a request with a genuine gateway token that
// does not act for the user that the request names. The client gets the same text
// for every reason. So a stolen token does not help to find out which users exist.
func NotActingFor(reason string) error {
	return &errs.Error{Kind: errs.Denied, Message: "the token does not act for this user", Err: errors.New(reason),
		Hint: "it acts for the members of its group, but not for users of the system and administrators"}
}

// askDaemon asks a daemon whether it accepts a credential, unless its answer is
// remembered.
func (a *Authenticator) askDaemon(ctx context.Context, key acceptance, expires, now time.Time, ask func(context.Context, string) error) error {
	if a.accepted.has(key, now) {
		return nil
	}
	if a.refused.has(key, now) {
		return refuse("the %s rejected the credential less than %s ago", key.daemon, rejectionTTL)
	}
	return a.questions.askOnce(ctx, key, func(ctx context.Context) error {
		if a.accepted.has(key, now) { // the daemon has just accepted the credential for another request
			return nil
		}
		acceptedRemovals, refusedRemovals := a.accepted.removalCount(), a.refused.removalCount()
		if err := ask(ctx, key.actAs); err != nil {
			if errs.KindOf(err) == errs.Unauthenticated {
				a.refused.add(key, now.Add(rejectionTTL), now, refusedRemovals)
			}
			return err
		}
		a.accepted.add(key, expires, now, acceptedRemovals)
		return nil
	})
}

// rejectionTTL is how long a daemon's rejection is remembered. A client that
// repeats a rejected credential gets no penalty (package penalty), so the
// repetitions must not cause work for the daemon.
const rejectionTTL = time.Second

// IsOutOfDate reports whether a token was rejected only because of its dates.
// If so, the token's user needs a new token, or a clock is wrong. If a key of
// this process can check the signature, the signature must also be genuine. If
// no key can check it, the result still tells an attacker nothing about a
// guessed token: the result depends only on the dates that the attacker wrote.
func (a *Authenticator) IsOutOfDate(ctx context.Context, r Rejection) bool {
	if r.dated == nil {
		return false
	}
	if r.dated.gateway {
		return true // the keeper does not verify a token that has expired
	}
	now := timeOf(a.Now)
	_, err := a.verifiedByKey(ctx, r.dated, now, now) // the result expires at once, so it is not remembered
	return err == nil
}

// Forget removes the remembered results about c: that a key of this process
// verified its token, and that the named daemon accepted it. Call Forget when
// this daemon has just refused c.
func (a *Authenticator) Forget(c Credential, daemon string) {
	p, err := c.tokenProof()
	if c.Local || err != nil {
		return
	}
	a.genuine.drop(p.hash)
	a.accepted.drop(acceptance{daemon, p.hash, ""})
	a.accepted.drop(acceptance{daemon, p.hash, c.ActAs})
	a.questions.forget()
}

// verifiedByKey reports whether a key of this process verifies p's signature.
func (a *Authenticator) verifiedByKey(ctx context.Context, p *proof, expires, now time.Time) (bool, error) {
	if a.genuine.has(p.hash, now) {
		return true, nil
	}
	verify := a.HS256
	if p.alg == rs256 {
		verify = a.RS256
	}
	if verify == nil {
		return false, nil
	}
	removals := a.genuine.removalCount()
	switch verify(ctx, p.Signature) {
	case Good:
		a.genuine.add(p.hash, expires, now, removals)
		return true, nil
	case Bad:
		return false, refuse("token: %w", errSignature)
	}
	return false, nil
}
