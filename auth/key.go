package auth

import (
	"bytes"
	"fmt"
	"slices"

	"schedrestd/errs"
	"schedrestd/guard"
	"schedrestd/guard/content"
	"schedrestd/hmackey"
)

// Bounds of an HS256 key in bytes.
const (
	minKey = hmackey.Least
	maxKey = hmackey.Most
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
// trust says who may own it and the directories above it, besides root, and whose group may write those; no owner means
// this process's user. The first of them is who has to be able to read it. The error is errs.NotFound or errs.Denied
// when this process can't read the file, errs.Invalid when it could but must not use it. Every
// one has the command that mends it.
func LoadKey(path string, trust guard.Trust) (Key, error) {
	trust = orSelf(trust)
	reader := trust.Owners[0]
	anew := recipe{
		option:  "jwt_key",
		command: fmt.Sprintf("(umask 077; head -c %d /dev/urandom >%%s)", minKey),
		room:    "(umask 022; mkdir -p -m 0700 %[1]s)",
		unlock:  fmt.Sprintf("chown %d %%[1]s && chmod 0600 %%[1]s", reader),
		secret:  fmt.Sprint(reader),
	}
	if reader != 0 { // whoever pastes it
		anew.rights = fmt.Sprintf(" && chown %d %%[1]s", reader)
		anew.room += anew.rights
	}
	r := rule("key file", trust)
	r.Secret = true
	data, facts, err := content.Read(path, r, maxKey)
	if err != nil {
		return Key{}, anew.mend(err, path, false)
	}
	if err := hmackey.Check(data); err != nil {
		worthless := len(data) < minKey || bytes.Count(data, data[:1]) == len(data)
		return Key{}, anew.mend(errs.Wrap(err, errs.Invalid, "key file %s", path), path, worthless)
	}
	key, err := NewKey(data)
	if err != nil {
		return Key{}, err
	}
	key.warnings = facts.Warnings
	return key, nil
}

// NewKey makes a key of at least 32 bytes.
func NewKey(secret []byte) (Key, error) {
	if len(secret) < minKey {
		return Key{}, errs.New(errs.Invalid, "%v", hmackey.TooShort(len(secret)))
	}
	own := slices.Clone(secret)
	return Key{bytes: func() []byte { return own }}, nil
}

// Warnings is what an administrator should know of the file the key came from.
func (k Key) Warnings() []string { return k.warnings }

// Format keeps the key out of everything that is printed.
func (k Key) Format(f fmt.State, _ rune) { fmt.Fprint(f, "(key)") }
