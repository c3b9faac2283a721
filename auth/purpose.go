package auth

import (
	"crypto/hmac"
	"crypto/sha256"
)

// Derive returns a key that is derived from k for one purpose. A token signed
// with the derived key is valid only for that purpose: neither k nor a key for
// another purpose verifies the token.
func (k Key) Derive(purpose string) Key {
	secret := k.secret()
	if len(secret) < minKey {
		return Key{}
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("key for the purpose: " + purpose))
	derived := mac.Sum(nil)
	return Key{bytes: func() []byte { return derived }}
}
