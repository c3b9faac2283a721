// Package hmackey checks whether a file can be the key for HS256 tokens. Both
// the daemons and the gateway's keeper use it. If only one side accepted a key,
// the gateway would treat every token of the cluster as forged.
package hmackey

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// Limits on a key, in bytes. RFC 7518 3.2 requires at least as many bits as the
// hash has. With a shorter key, an attacker who has a single token can find the
// key by guessing.
const (
	MinSize = 32
	MaxSize = 64 << 10
)

// publicTexts lists the beginnings of files that contain no secret.
var publicTexts = []string{"-----BEGIN PUBLIC KEY", "-----BEGIN RSA PUBLIC KEY", "-----BEGIN CERTIFICATE", "ssh-rsa "}

// Check returns an error if data can't be a key: either its length is wrong, or
// it is not secret. The data argument is the content of a whole file. A private
// key in PEM format is accepted, because some sites use such a file as the key,
// including its first and last lines. Errors contain no part of data.
func Check(data []byte) error {
	text := bytes.TrimSpace(data)
	begins := func(prefix string) bool { return bytes.HasPrefix(text, []byte(prefix)) }
	switch {
	case len(data) < MinSize:
		return TooShort(len(data))
	case len(data) > MaxSize:
		return fmt.Errorf("longer than %d bytes", MaxSize)
	case slices.ContainsFunc(publicTexts, begins):
		return errors.New("a public key or certificate, which is not secret")
	case IsSet(data):
		return errors.New("a key set, which is not secret: use jwks= for it")
	case bytes.Count(data, data[:1]) == len(data): // a crash may leave such a file
		return fmt.Errorf("the same byte %d times, which is not secret", len(data))
	}
	return nil
}

// IsSet reports whether data is a JSON key set. It does not parse data: a random key
// does not look like a key set.
func IsSet(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) && bytes.Contains(data, []byte(`"keys"`))
}

// TooShort returns the error for a key of n bytes.
func TooShort(n int) error { return fmt.Errorf("%d bytes; HS256 needs at least %d", n, MinSize) }
