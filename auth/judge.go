package auth

import (
	"context"
	"time"

	"schedrestd/errs"
)

// Judge decides at the gateway whether a credential is genuine, before anything
// is done for it.
//
// It verifies a signature when it has the key. Otherwise it asks the daemon
// that will serve the request, and remembers a positive answer for a minute at
// most: for that daemon, that very token and that name to act as. Only the
// daemon decides whether a token's user may act for another. The daemon also
// verifies every request itself. The judge only avoids work for attackers, and
// grants nothing.
//
// The zero Judge has no key. It is safe for concurrent use.
type Judge struct {
	HS256 func(context.Context, Signature) Answer // nil: the key is not available here
	RS256 func(context.Context, Signature) Answer // nil: there is no key set here
	Now   func() time.Time                        // nil: time.Now

	genuine  memory[hash]       // tokens whose signature was verified
	accepted memory[acceptance] // tokens that daemons accepted
	refused  memory[acceptance] // … and rejected, a moment ago
	asking   questions
}

// acceptance identifies what a daemon accepted: a token that acts as a name. The
// token itself is not kept.
type acceptance struct {
	daemon string
	token  hash
	actAs  string
}

// Signature is what is needed to verify a token.
type Signature struct {
	KeyID  string // kid of the token's header; "" when it has none
	Signed string // the signed text: header and payload
	Bytes  []byte
}

// Answer is the result of verifying a signature.
type Answer uint8

// The answers.
const (
	Unknown Answer = iota // there is no key to verify with
	Good
	Bad
)

// Genuine returns nil when c is genuine: by the peer's uid, by a key that is
// here, or by the answer of the daemon of that name. ask asks that daemon with
// a request that costs it as little as possible, once for all concurrent
// requests with the same credential. The error is errs.Unauthenticated, or why
// the daemon could not be asked.
func (j *Judge) Genuine(ctx context.Context, c Credential, daemon string, ask func(context.Context) error) error {
	if c.Local {
		return nil
	}
	p, err := c.takenApart()
	if err != nil {
		return err
	}
	now := timeOf(j.Now)
	yes := acceptance{daemon, p.hash, c.ActAs}
	if j.accepted.has(yes, now) {
		return nil
	}
	if j.refused.has(yes, now) {
		return refuse("the %s rejected the credential less than %s ago", daemon, refusedFor)
	}
	own := c.ActAs == "" || c.ActAs == c.Claims.User
	if good, err := j.verified(ctx, p, c.Claims.Expires, now); err != nil || good && own {
		return err
	}
	return j.asking.once(ctx, yes, func(ctx context.Context) error {
		if j.accepted.has(yes, now) { // another request has just been answered
			return nil
		}
		asked, refused := j.accepted.asking(), j.refused.asking()
		if err := ask(ctx); err != nil {
			if errs.KindOf(err) == errs.Unauthenticated {
				j.refused.add(yes, now.Add(refusedFor), now, refused)
			}
			return err
		}
		j.accepted.add(yes, c.Claims.Expires, now, asked)
		return nil
	})
}

// refusedFor is how long a daemon's rejection is remembered. A client that
// repeats a rejected credential pays nothing for it (package penalty), and must
// not make the daemon work for each repetition.
const refusedFor = time.Second

// OutOfDate reports whether the rejected token is merely out of date: its user
// must fetch a new one, or a clock is wrong. Where a key is available it must
// verify the signature. Otherwise the token is believed: it was refused without
// asking any daemon, so an attacker who guesses learns nothing by sending it.
func (j *Judge) OutOfDate(ctx context.Context, r Rejection) bool {
	if r.dated == nil {
		return false
	}
	now := timeOf(j.Now)
	_, err := j.verified(ctx, r.dated, now, now) // a lifetime of 0: the result is not remembered
	return err == nil
}

// Forget drops what is remembered of c: the daemon of that name has just
// refused it.
func (j *Judge) Forget(c Credential, daemon string) {
	p, err := c.takenApart()
	if c.Local || err != nil {
		return
	}
	j.genuine.drop(p.hash)
	j.accepted.drop(acceptance{daemon, p.hash, c.ActAs})
	j.asking.forget()
}

// verified reports whether a key that is here verifies p's signature.
func (j *Judge) verified(ctx context.Context, p *proof, expires, now time.Time) (bool, error) {
	if j.genuine.has(p.hash, now) {
		return true, nil
	}
	verify := j.HS256
	if p.alg == rs256 {
		verify = j.RS256
	}
	if verify == nil {
		return false, nil
	}
	asked := j.genuine.asking()
	switch verify(ctx, p.Signature) {
	case Good:
		j.genuine.add(p.hash, expires, now, asked)
		return true, nil
	case Bad:
		return false, refuse("token: %w", errSignature)
	}
	return false, nil
}
