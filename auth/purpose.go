package auth

import (
	"crypto/hmac"
	"crypto/sha256"
)

// Derive returns a key for one purpose, which it derives from k. A token signed
// with the derived key is valid only for that purpose: neither k nor the
// derived key for another purpose verifies it.
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
