package auth

import (
	"crypto/hmac"
	"crypto/sha256"
)

// For is a key for one purpose, made of k. A token signed with it is good where that purpose
// is asked for and nowhere else: to whoever judges tokens with k itself, or with the
// key of another purpose, its signature is wrong.
func (k Key) For(purpose string) Key {
	secret := k.secret()
	if len(secret) < minKey {
		return Key{}
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("key for the purpose: " + purpose))
	derived := mac.Sum(nil)
	return Key{bytes: func() []byte { return derived }}
}
