package auth

import (
	"time"

	"github.com/golang-jwt/jwt/v5"

	"schedrestd/errs"
)

// How long a created token is good for.
const (
	DefaultLifespan = 1800 * time.Second
	MaxLifespan     = 366 * 24 * time.Hour // longer is an account without a password
)

// Create makes a token for user that is valid for lifespan, whole seconds, from
// now. Who may have one for whom is the caller's to decide. An error is errs.Invalid.
func Create(key Key, user string, lifespan time.Duration, now time.Time) (string, error) {
	switch {
	case len(key.secret()) < minKey:
		return "", errs.New(errs.Internal, "create token: no key")
	case !PosixName(user):
		return "", errs.New(errs.Invalid, "not a user name")
	case lifespan < time.Second || lifespan > MaxLifespan:
		return "", errs.New(errs.Invalid, "lifespan must be from 1 to %d seconds", MaxLifespan/time.Second)
	}
	iat := now.Unix()
	claims := jwt.MapClaims{"iat": iat, "exp": iat + int64(lifespan/time.Second), "sun": user}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(key.secret())
	return token, errs.Wrap(err, errs.Internal, "create token")
}

// Verifier says whether tokens are genuine.
type Verifier struct {
	Key            Key
	UserClaimField string           // as in Options
	Now            func() time.Time // nil: time.Now
}

// Verify judges a token as Inspect does, and its signature with the key. What the
// signature is made with is the key's matter, never the token's: a token that
// says RS256 can't have this key taken for a public one, nor the reverse.
func (v Verifier) Verify(token string) (Claims, error) {
	if len(v.Key.secret()) < minKey {
		return Claims{}, refuse("token: no key to verify it with") // an empty key would accept what anybody signs
	}
	p, err := parse(token)
	if err != nil {
		return Claims{}, refuse("token: %w", err)
	}
	if p.alg != hs256 {
		return Claims{}, refuse("token: alg is not the key's")
	}
	// The signature first: only what the key's holder wrote is worth an opinion.
	if err := jwt.SigningMethodHS256.Verify(p.signed, p.signature, v.Key.secret()); err != nil {
		return Claims{}, refuse("token: wrong signature")
	}
	return Inspect(token, Options{UserClaimField: v.UserClaimField, Now: v.Now})
}
