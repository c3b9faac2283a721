package auth

import (
	"bytes"
	"fmt"
	"slices"

	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/internal/guard/content"
	"schedrestd/internal/hmackey"
)

// Limits on an HS256 key, in bytes.
const (
	minKey = hmackey.MinSize
	maxKey = hmackey.MaxSize
)

// Key is the cluster's HS256 key. Anyone who has it can act as any user. Every
// verb of package fmt prints it as "(key)".
type Key struct {
	bytes    func() []byte // a function, so that fmt prints no key even where it can't call Format
	warnings []string
}

// secret returns the bytes of the key, or nil for the zero Key.
func (k Key) secret() []byte {
	if k.bytes == nil {
		return nil
	}
	return k.bytes()
}

// LoadKey reads the key from a file. It refuses a file that other users may
// read, write or replace. As in Slurm, all bytes of the file are the key,
// including a line end that an editor added. A site may also use a PEM file
// that contains a private key. In that case the BEGIN and END lines are also
// part of the key. LoadKey refuses content that is not secret: a public key, a
// certificate, a key set, or a single byte repeated throughout the file, which
// a crash may leave behind.
//
// trust lists the users, in addition to root, that may own the file and the
// directories above it. It also lists the groups that may write to these
// directories. If trust lists no owners, LoadKey adds this process's user. The
// first owner is the user that will read the file, so the commands in hints
// give the file to this user. The error is errs.NotFound or errs.Denied if this
// process can't read the file, and errs.Invalid if the file must not be used.
// Every error has a hint with a command that fixes or inspects the file.
func LoadKey(path string, trust guard.Trust) (Key, error) {
	trust = orSelf(trust)
	reader := trust.Owners[0]
	fix := recipe{
		option:    "jwt_key",
		command:   fmt.Sprintf("(umask 077; head -c %d /dev/urandom >%%s)", minKey),
		directory: "(umask 022; mkdir -p -m 0700 %[1]s)",
		unlock:    fmt.Sprintf("chown %d %%[1]s && chmod 0600 %%[1]s", reader),
		secret:    fmt.Sprint(reader),
		remark:    "all daemons and gateways need the same key: KEYS.md, Change a key",
	}
	if reader != 0 { // root, which is 0, runs the command
		fix.owner = fmt.Sprintf(" && chown %d %%[1]s", reader)
		fix.directory += fix.owner
	}
	r := rule("key file", trust)
	r.Secret = true
	data, facts, err := content.Read(path, r, maxKey)
	if err != nil {
		return Key{}, fix.withHint(err, path, false)
	}
	if err := hmackey.Check(data); err != nil {
		worthless := len(data) < minKey || bytes.Count(data, data[:1]) == len(data)
		return Key{}, fix.withHint(errs.Wrap(err, errs.Invalid, "key file %s", path), path, worthless)
	}
	key, err := NewKey(data)
	if err != nil {
		return Key{}, err
	}
	key.warnings = facts.Warnings
	return key, nil
}

// NewKey returns a key, or an error if the secret is shorter than 32 bytes.
func NewKey(secret []byte) (Key, error) {
	if len(secret) < minKey {
		return Key{}, errs.New(errs.Invalid, "%v", hmackey.TooShort(len(secret)))
	}
	copied := slices.Clone(secret)
	return Key{bytes: func() []byte { return copied }}, nil
}

// Warnings returns problems with the key's file that an administrator should
// know about.
func (k Key) Warnings() []string { return k.warnings }

// Format writes "(key)", so that formatted output never contains the key.
func (k Key) Format(f fmt.State, _ rune) { fmt.Fprint(f, "(key)") }
