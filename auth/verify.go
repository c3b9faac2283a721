package auth

import (
	"errors"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Verifier says whether tokens are genuine: what the daemons do with every one, whatever
// the gateway thought of it.
type Verifier struct {
	Key            Key              // for HS256; the zero Key: such tokens are refused
	Keys           func() *KeySet   // for RS256, asked each time; nil, or a nil set: such tokens are refused
	UserClaimField string           // as in Options
	Now            func() time.Time // nil: time.Now
}

// Verify judges a token as Inspect does, and its signature with the keys that are here.
// Which algorithm a signature was made with is the key's matter, never the token's: what the
// token says only chooses among the keys made for that algorithm, so that no RSA key is ever
// taken for a secret, nor the reverse.
func (v Verifier) Verify(token string) (Claims, error) {
	p, err := parse(token)
	if err != nil {
		return Claims{}, refuse("token: %w", err)
	}
	// The signature first: only what the key's holder wrote is worth an opinion.
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
		return errNoKey // an empty key would accept what anybody signs
	}
	if jwt.SigningMethodHS256.Verify(signed, signature, k.secret()) != nil {
		return errSignature
	}
	return nil
}
