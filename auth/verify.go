package auth

import (
	"time"

	"github.com/golang-jwt/jwt/v5"

	"schedrestd/auth/jose"
)

// Verifier verifies tokens. The daemons use it for every token, even if the
// gateway has already verified the token.
type Verifier struct {
	Key   Key              // for HS256; with the zero Key, HS256 tokens are refused
	Keys  func() *KeySet   // for RS256, called for each RS256 token; without a KeySet, RS256 tokens are refused
	Rules Rules            // the bundled daemons look users up on their own machine, and never use ClientIDs
	Now   func() time.Time // nil for time.Now
}

// Verify checks a token as Inspect does, and also verifies its signature. Each
// type of key is used for only one algorithm, whatever the token's header says.
// So an RSA key is never used as a secret, and a secret is never used as an RSA
// key.
func (v Verifier) Verify(token string) (Claims, error) {
	e := examination{token: token, rules: v.Rules, now: timeOf(v.Now)}
	if err := e.run(formChecks); err != nil {
		return Claims{}, refuse("token: %w", err)
	}
	// The signature is checked first, so that only the contents of genuine
	// tokens are parsed further.
	if err := v.verifySignature(e.parts); err != nil {
		return Claims{}, refuse("token: %w", err)
	}
	if err := e.run(e.claimChecks()); err != nil {
		return Claims{}, refuse("token: %w", err)
	}
	return e.claims, nil
}

var (
	errNoKey     = jose.ErrNoKey
	errSignature = jose.ErrSignature
)

// verifySignature checks the signature of p.
func (v Verifier) verifySignature(p parts) error {
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

// verify checks an HS256 signature of a text.
func (k Key) verify(signed string, signature []byte) error {
	if len(k.secret()) < minKey {
		return errNoKey // with an empty key, anyone could sign tokens
	}
	if jwt.SigningMethodHS256.Verify(signed, signature, k.secret()) != nil {
		return errSignature
	}
	return nil
}
