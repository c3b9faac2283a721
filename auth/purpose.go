package auth

import (
	"crypto/hmac"
	"crypto/sha256"
)

// Derive derives a key from k for one purpose. A token that is signed with the
// derived key is valid only for that purpose: verification with k, or with the
// key for another purpose, fails.
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
