// Package jose parses JSON objects and sets of public keys as strictly as the checks of
// tokens need, and verifies signatures with the keys. It is linked into the keeper, so
// it imports no network.
package jose

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"schedrestd/internal/errs"
)

// Limits on a key set. If a token has no kid, every key is tried, so more keys
// make it more expensive to reject a forged token. Identity providers publish
// two or three keys.
const (
	MaxKeySet = 1 << 20 // bytes of the file
	MaxKeys   = 32
)

// KeySet holds those RSA keys of a JSON Web Key Set (RFC 7517) that can verify
// RS256 tokens. Each key can verify tokens for any user. If two keys have the
// same kid, both are tried.
type KeySet struct {
	keys    []rsaKey
	ignored map[string]int // number of keys that can't be used, by reason
}

// ParseKeySet parses a key set. It ignores keys that are not for RS256
// signatures, because identity providers also publish such keys. It refuses the
// whole set (errs.Invalid) if the set has a private or secret key, a weak RSA
// key, or no usable key. Errors contain no part of a key.
func ParseKeySet(data []byte) (*KeySet, error) {
	list, err := keyList(data)
	if err != nil {
		return nil, err
	}
	set := &KeySet{ignored: map[string]int{}}
	for i, raw := range list {
		key, unusable, err := parseKey(raw)
		switch {
		case err != nil:
			return nil, errs.New(errs.Invalid, "key %d: %v", i+1, err)
		case unusable != "":
			set.ignored[unusable]++
		default:
			set.keys = append(set.keys, key)
		}
	}
	switch {
	case len(set.keys) == 0:
		return nil, errs.New(errs.Invalid, "no RSA key for RS256 signatures%s", set.ignoredText())
	case len(set.keys) > MaxKeys:
		return nil, errs.New(errs.Invalid, "%d RS256 keys; at most %d are supported", len(set.keys), MaxKeys)
	}
	return set, nil
}

// keyList returns the keys of a set, unparsed.
func keyList(data []byte) (list []json.RawMessage, err error) {
	set, err := ParseObject(data)
	if err != nil {
		return nil, errs.New(errs.Invalid, "%v", err)
	}
	if raw, ok := set["keys"]; !ok || json.Unmarshal(raw, &list) != nil {
		return nil, errs.New(errs.Invalid, "no list named keys")
	}
	return list, nil
}

// Errors of Verify.
var (
	ErrNoKey     = errors.New("no key for its alg")
	ErrSignature = errors.New("wrong signature")
)

// Verify checks the RS256 signature of a token. signed is the text that the
// signature covers. If the token has a kid, Verify tries the keys with the same
// kid and the keys without a kid. Otherwise it tries all keys.
func (s *KeySet) Verify(kid, signed string, signature []byte) error {
	digest := sha256.Sum256([]byte(signed))
	matched := false
	for _, key := range s.keys {
		if kid != "" && key.id != "" && key.id != kid {
			continue
		}
		matched = true
		if rsa.VerifyPKCS1v15(key.public, crypto.SHA256, digest[:], signature) == nil {
			return nil
		}
	}
	if !matched {
		return errors.New("no key matches its kid")
	}
	return ErrSignature
}

// Keys returns the keys.
func (s *KeySet) Keys() (list []*rsa.PublicKey) {
	for _, key := range s.keys {
		list = append(list, key.public)
	}
	return list
}

// Len returns the number of keys.
func (s *KeySet) Len() int { return len(s.keys) }

// String describes the set for a log: the kids of the usable keys, and the
// reasons why other keys are ignored.
func (s *KeySet) String() string {
	ids := make([]string, len(s.keys))
	for i, key := range s.keys {
		ids[i] = fmt.Sprintf("%.60q", key.id)
	}
	return fmt.Sprintf("kid %s", strings.Join(ids, ", ")) + s.ignoredText()
}

// ignoredText returns the text to append to a message about the set: for each
// reason, the number of keys that are ignored.
func (s *KeySet) ignoredText() (text string) {
	for _, reason := range slices.Sorted(maps.Keys(s.ignored)) {
		text += fmt.Sprintf("; %d ignored: %s", s.ignored[reason], reason)
	}
	return text
}
