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

// Key is the cluster's HS256 key, with which its holder can act as any user. It
// prints as "(key)" with every verb.
type Key struct {
	bytes    func() []byte // a function: fmt can't print its value, even where it can't call Format
	warnings []string
}

// secret returns nil for the zero Key.
func (k Key) secret() []byte {
	if k.bytes == nil {
		return nil
	}
	return k.bytes()
}

// LoadKey reads the key in the file path, and refuses a file that other users
// may read, write or replace. As for Slurm, all bytes of the file are the key:
// the line end that an editor adds is part of it, and so are the lines around a
// private key in PEM, which a site's guide may have told to use. Content that
// is not secret is refused: a public key, a certificate, a key set, or one
// repeated byte, which a crash may leave behind.
//
// trust names the owners, apart from root, of the file and the directories
// above it, and whose group may write those. Without owners it is this
// process's user. The first owner must be able to read the file. The error is
// errs.NotFound or errs.Denied when this process can't read the file, and
// errs.Invalid when it must not use it. Every error has the command that fixes
// it.
func LoadKey(path string, trust guard.Trust) (Key, error) {
	trust = orSelf(trust)
	reader := trust.Owners[0]
	anew := recipe{
		option:    "jwt_key",
		command:   fmt.Sprintf("(umask 077; head -c %d /dev/urandom >%%s)", minKey),
		directory: "(umask 022; mkdir -p -m 0700 %[1]s)",
		unlock:    fmt.Sprintf("chown %d %%[1]s && chmod 0600 %%[1]s", reader),
		secret:    fmt.Sprint(reader),
	}
	if reader != 0 { // the user who runs the command
		anew.owner = fmt.Sprintf(" && chown %d %%[1]s", reader)
		anew.directory += anew.owner
	}
	r := rule("key file", trust)
	r.Secret = true
	data, facts, err := content.Read(path, r, maxKey)
	if err != nil {
		return Key{}, anew.withHint(err, path, false)
	}
	if err := hmackey.Check(data); err != nil {
		worthless := len(data) < minKey || bytes.Count(data, data[:1]) == len(data)
		return Key{}, anew.withHint(errs.Wrap(err, errs.Invalid, "key file %s", path), path, worthless)
	}
	key, err := NewKey(data)
	if err != nil {
		return Key{}, err
	}
	key.warnings = facts.Warnings
	return key, nil
}

// NewKey returns a key of at least 32 bytes.
func NewKey(secret []byte) (Key, error) {
	if len(secret) < minKey {
		return Key{}, errs.New(errs.Invalid, "%v", hmackey.TooShort(len(secret)))
	}
	own := slices.Clone(secret)
	return Key{bytes: func() []byte { return own }}, nil
}

// Warnings returns what an administrator should know about the file of the key.
func (k Key) Warnings() []string { return k.warnings }

// Format keeps the key out of everything that is printed.
func (k Key) Format(f fmt.State, _ rune) { fmt.Fprint(f, "(key)") }
