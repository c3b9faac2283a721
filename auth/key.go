package auth

import (
	"bytes"
	"fmt"
	"slices"

	"schedrestd/errs"
	"schedrestd/guard"
)

// Bounds of an HS256 key in bytes. RFC 7518 3.2 wants at least as many bits as the
// hash has: a shorter key can be guessed from any one token.
const (
	minKey = 32
	maxKey = 64 << 10
)

// Key is the cluster's HS256 key: with it, anybody is whom he likes to be. It
// prints as "(key)" whatever the verb.
type Key struct {
	bytes    func() []byte // a function: fmt can't look into one, not even where it can't call Format
	warnings []string
}

// secret is nil for the zero Key.
func (k Key) secret() []byte {
	if k.bytes == nil {
		return nil
	}
	return k.bytes()
}

// LoadKey reads the key in the file path and refuses one that others may read, write or
// swap. All its bytes are the key, as for Slurm, whatever they look like: the line end
// that an editor or echo put behind a text is part of it, and so are the lines around
// a private key in PEM, which the site's guides may have told to take. What is no secret
// is refused: a public key, a certificate, a key set, or a single byte over and over,
// which a crash may leave behind.
//
// owners are the uids that may own it, besides root; none means this process's own. The
// error is errs.NotFound or errs.Denied when this process can't read the file, which is
// normal at a gateway; errs.Invalid when it could but must not use it. Every one has the
// command that mends it.
func LoadKey(path string, owners ...uint32) (Key, error) {
	anew := fmt.Sprintf("(umask 077; head -c %d /dev/urandom >%s)", minKey, guard.Quote(path))
	data, facts, err := guard.Read(path, guard.Rule{What: "key file", Owners: orRoot(owners), Secret: true}, maxKey)
	if err != nil {
		return Key{}, mend(err, path, anew)
	}
	key, err := NewKey(data)
	if err == nil {
		err = noSecret(data)
	}
	if err != nil {
		return Key{}, mend(errs.Wrap(err, errs.Invalid, "key file %s", path), path, anew)
	}
	key.warnings = facts.Warnings
	return key, nil
}

// publicTexts are how files begin that hold no secret.
var publicTexts = []string{"-----BEGIN PUBLIC KEY", "-----BEGIN RSA PUBLIC KEY", "-----BEGIN CERTIFICATE", "ssh-rsa "}

// noSecret says why everybody could know the key.
func noSecret(data []byte) error {
	begins := func(text string) bool { return bytes.HasPrefix(bytes.TrimSpace(data), []byte(text)) }
	set, _ := parseObject(data)
	switch {
	case slices.ContainsFunc(publicTexts, begins):
		return errs.New(errs.Invalid, "a public key or a certificate, which is no secret")
	case set["keys"] != nil:
		return errs.New(errs.Invalid, "a key set, which is no secret: jwks= is for those")
	case bytes.Count(data, data[:1]) == len(data):
		return errs.New(errs.Invalid, "one byte %d times, which is no secret", len(data))
	}
	return nil
}

// NewKey makes a key of at least 32 bytes.
func NewKey(secret []byte) (Key, error) {
	if len(secret) < minKey {
		return Key{}, errs.New(errs.Invalid, "%d bytes, HS256 needs at least %d", len(secret), minKey)
	}
	own := slices.Clone(secret)
	return Key{bytes: func() []byte { return own }}, nil
}

// Warnings is what an administrator should know of the file the key came from.
func (k Key) Warnings() []string { return k.warnings }

// Format keeps the key out of everything that is printed.
func (k Key) Format(f fmt.State, _ rune) { fmt.Fprint(f, "(key)") }
