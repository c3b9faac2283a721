// Package hmackey says which bytes may be the key of HS256 tokens. The daemons and the gateway's keeper
// ask the same question: a key that one of them took and the other refused would have
// the gateway call every token of the cluster forged.
package hmackey

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// Bounds of a key in bytes. RFC 7518 3.2 wants at least as many bits as the hash has: a shorter key
// can be guessed from any one token.
const (
	Least = 32
	Most  = 64 << 10
)

// publicTexts are how files begin that hold no secret.
var publicTexts = []string{"-----BEGIN PUBLIC KEY", "-----BEGIN RSA PUBLIC KEY", "-----BEGIN CERTIFICATE", "ssh-rsa "}

// Check says why data, all that a file has, must not be the key: a wrong length, or something that everybody could
// know. The lines around a private key in PEM are part of a key, which guides of sites may have told
// to take. No error has data in it.
func Check(data []byte) error {
	text := bytes.TrimSpace(data)
	begins := func(with string) bool { return bytes.HasPrefix(text, []byte(with)) }
	switch {
	case len(data) < Least:
		return TooShort(len(data))
	case len(data) > Most:
		return fmt.Errorf("longer than %d bytes", Most)
	case slices.ContainsFunc(publicTexts, begins):
		return errors.New("a public key or certificate, which is not secret")
	// Not parsed: the keeper parses nothing. That random bytes look like it does not happen.
	case begins("{") && bytes.Contains(text, []byte(`"keys"`)):
		return errors.New("a key set, which is not secret: use jwks= for it")
	case bytes.Count(data, data[:1]) == len(data): // as a crash may leave it behind
		return fmt.Errorf("the same byte %d times, which is not secret", len(data))
	}
	return nil
}

// TooShort refuses a key of n bytes.
func TooShort(n int) error { return fmt.Errorf("%d bytes; HS256 needs at least %d", n, Least) }
