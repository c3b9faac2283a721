package auth

import (
	"context"
	"time"

	"schedrestd/errs"
)

// Judge says at the gateway whether a credential is genuine, before anything is done for it.
//
// A signature is verified here when there is something to verify it with. Else the daemon that will
// serve the request vouches, and its yes is remembered: for that daemon, that very token and that
// name to act as, for a minute at the most. Whether a token's user may act for another is always
// the daemon's to say. The daemon verifies every request itself, too: what is decided here keeps
// work from being done for strangers, and gives nobody a right.
//
// The zero Judge has nothing to verify with. It is safe for concurrent use.
type Judge struct {
	HS256 func(context.Context, Signature) Answer // nil: nobody here has the key
	RS256 func(context.Context, Signature) Answer // nil: no key set is here
	Now   func() time.Time                        // nil: time.Now

	genuine memory[hash]    // tokens that a key said it of
	vouched memory[vouched] // what daemons said yes to
	refused memory[vouched] // … and no, a moment ago
	asking  questions
}

// vouched is what a daemon vouches for: that token, acting as that name. The token itself is not kept.
type vouched struct {
	daemon string
	token  hash
	actAs  string
}

// Signature is what a token is verified by.
type Signature struct {
	KeyID  string // kid of the token's header; "" when it has none
	Signed string // the text that is signed, header and payload
	Bytes  []byte
}

// Answer is what can be said of a signature.
type Answer uint8

// The answers.
const (
	Unknown Answer = iota // there is nothing here to tell with
	Good
	Bad
)

// Genuine is nil when c is: by the kernel's word, by a key that is here, or by the word of the
// daemon of that name. ask asks that one, and costs it as little as can be; for one of several
// requests with the same credential when they come together.
// The error is errs.Unauthenticated, or why the daemon could not be asked.
func (j *Judge) Genuine(ctx context.Context, c Credential, daemon string, ask func(context.Context) error) error {
	if c.Local {
		return nil
	}
	p, err := c.takenApart()
	if err != nil {
		return err
	}
	now := timeOf(j.Now)
	yes := vouched{daemon, p.hash, c.ActAs}
	if j.vouched.has(yes, now) {
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
		if j.vouched.has(yes, now) { // who asked has just been answered
			return nil
		}
		asked, refused := j.vouched.asking(), j.refused.asking()
		if err := ask(ctx); err != nil {
			if errs.KindOf(err) == errs.Unauthenticated {
				j.refused.add(yes, now.Add(refusedFor), now, refused)
			}
			return err
		}
		j.vouched.add(yes, c.Claims.Expires, now, asked)
		return nil
	})
}

// refusedFor is how long a daemon's no is remembered. A client that repeats a
// rejected credential pays nothing for it (package penalty), and must not make
// the daemon work for each repetition.
const refusedFor = time.Second

// OutOfDate reports whether only its dates speak against the rejected token:
// its user has to fetch a new one, or a clock is wrong. Where a key is here it
// must verify the signature. Where none can tell, the token is believed:
// whatever its signature, it was refused without a question to any daemon, so
// that a guesser learns nothing by sending it.
func (j *Judge) OutOfDate(ctx context.Context, r Rejection) bool {
	if r.dated == nil {
		return false
	}
	now := timeOf(j.Now)
	_, err := j.verified(ctx, r.dated, now, now) // which is not remembered for any time
	return err == nil
}

// Forget takes back what was remembered of c: the daemon of that name has just refused it.
func (j *Judge) Forget(c Credential, daemon string) {
	p, err := c.takenApart()
	if c.Local || err != nil {
		return
	}
	j.genuine.drop(p.hash)
	j.vouched.drop(vouched{daemon, p.hash, c.ActAs})
	j.asking.forget()
}

// verified tells whether a key that is here says that p's token is genuine.
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
