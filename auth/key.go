package auth

import (
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

// LoadKey reads the key in the file path, all its bytes, and refuses one that
// others may read, write or swap. owners are the uids that may own it, besides
// root; none means this process's own. The error is errs.NotFound or errs.Denied
// when this process can't read the file, which is normal at a gateway;
// errs.Invalid when it could but must not use it, with the command that mends it.
func LoadKey(path string, owners ...uint32) (Key, error) {
	data, facts, err := guard.Read(path, guard.Rule{What: "key file", Owners: orRoot(owners), Secret: true}, maxKey)
	if err != nil {
		return Key{}, err
	}
	key, err := NewKey(data)
	if err != nil {
		quoted := guard.Quote(path)
		return Key{}, errs.New(errs.Invalid, "key file %s: %v", path, err).
			WithHint("(umask 077; head -c 32 /dev/urandom >%s)", quoted)
	}
	key.warnings = facts.Warnings
	return key, nil
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
