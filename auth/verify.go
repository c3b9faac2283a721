package auth

import (
	"errors"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Verifier verifies tokens. The daemons use it for every token, whatever the
// gateway decided.
type Verifier struct {
	Key            Key              // for HS256; with the zero Key such tokens are refused
	Keys           func() *KeySet   // for RS256, called each time; without a set such tokens are refused
	UserClaimField string           // as in Options
	Now            func() time.Time // nil: time.Now
}

// Verify checks a token as Inspect does, and its signature with the keys that
// are here. The key, never the token, determines the algorithm: what the token
// says only selects among the keys for that algorithm, so that an RSA key is
// never used as a secret, or the reverse.
func (v Verifier) Verify(token string) (Claims, error) {
	p, err := parse(token)
	if err != nil {
		return Claims{}, refuse("token: %w", err)
	}
	// The signature first: the rest is checked only when the key's holder wrote
	// it.
	if err := v.genuine(p); err != nil {
		return Claims{}, refuse("token: %w", err)
	}
	return p.claims(v.UserClaimField, timeOf(v.Now))
}

var (
	errNoKey     = errors.New("no key for its alg")
	errSignature = errors.New("wrong signature")
)

// genuine checks the signature of p.
func (v Verifier) genuine(p parts) error {
	switch p.alg {
	case hs256:
		return v.Key.verify(p.signed, p.signature)
	case rs256:
		var keys *KeySet
		if v.Keys != nil {
			keys = v.Keys()
		}
		return keys.verify(p.kid, p.signed, p.signature)
	}
	return errNoKey
}

// verify checks an HS256 signature of the text signed.
func (k Key) verify(signed string, signature []byte) error {
	if len(k.secret()) < minKey {
		return errNoKey // an empty key would accept tokens that any attacker signs
	}
	if jwt.SigningMethodHS256.Verify(signed, signature, k.secret()) != nil {
		return errSignature
	}
	return nil
}
