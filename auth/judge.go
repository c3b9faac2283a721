package auth

import (
	"context"
	"time"
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

	memory memory
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

// here is the daemon's place in the memory for what was verified without one.
const here = ""

// Genuine is nil when c is: by the kernel's word, by a key that is here, or by the word of the
// daemon of that name, which is not empty. ask asks that one, and costs it as little as can be.
// The error is errs.Unauthenticated, or why the daemon could not be asked.
func (j *Judge) Genuine(ctx context.Context, c Credential, daemon string, ask func(context.Context) error) error {
	if c.Local {
		return nil
	}
	now := Options{Now: j.Now}.now()
	yes := vouched{daemon, hashOf(c.Token), c.ActAs}
	if j.memory.has(yes, now) {
		return nil
	}
	own := c.ActAs == "" || c.ActAs == c.Claims.User
	if good, err := j.verified(ctx, c, now); err != nil || good && own {
		return err
	}
	if err := ask(ctx); err != nil {
		return err
	}
	j.memory.add(yes, c.Claims.Expires, now)
	return nil
}

// Forget takes back what was remembered of c: the daemon of that name has just refused it.
func (j *Judge) Forget(c Credential, daemon string) {
	hash := hashOf(c.Token)
	j.memory.drop(vouched{daemon, hash, c.ActAs})
	j.memory.drop(vouched{here, hash, ""})
}

// ForgetAll is for new keys: what the ones before said counts no more.
func (j *Judge) ForgetAll() { j.memory.clear() }

// verified tells whether a key that is here says that c's token is genuine.
func (j *Judge) verified(ctx context.Context, c Credential, now time.Time) (bool, error) {
	mine := vouched{here, hashOf(c.Token), ""}
	if j.memory.has(mine, now) {
		return true, nil
	}
	p, err := parse(c.Token)
	if err != nil {
		return false, refuse("token: %w", err)
	}
	verify := j.HS256
	if p.alg == rs256 {
		verify = j.RS256
	}
	if verify == nil {
		return false, nil
	}
	switch verify(ctx, Signature{KeyID: p.kid, Signed: p.signed, Bytes: p.signature}) {
	case Good:
		j.memory.add(mine, c.Claims.Expires, now)
		return true, nil
	case Bad:
		return false, refuse("token: %w", errSignature)
	}
	return false, nil
}
