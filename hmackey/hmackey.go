// Package hmackey determines which bytes can be the key of HS256 tokens. The
// daemons and the gateway's keeper must agree. If only one side accepted a key,
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

// Check returns the reason why data, the content of a whole file, must not be
// the key: a wrong length, or public content. It accepts a private key in PEM,
// because some sites use such a file, including its first and last lines, as
// the key. Errors contain no data.
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
	// The text is not parsed as JSON, because the keeper parses nothing. Random
	// bytes do not look like a key set.
	case begins("{") && bytes.Contains(text, []byte(`"keys"`)):
		return errors.New("a key set, which is not secret: use jwks= for it")
	case bytes.Count(data, data[:1]) == len(data): // a crash may leave such a file
		return fmt.Errorf("the same byte %d times, which is not secret", len(data))
	}
	return nil
}

// TooShort returns the error for a key of n bytes.
func TooShort(n int) error { return fmt.Errorf("%d bytes; HS256 needs at least %d", n, MinSize) }
