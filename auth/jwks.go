package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/internal/guard/content"
)

// Limits on a key set. If a token has no kid, every key is tried, so more keys
// make it more expensive to reject a forged token. Identity providers publish
// two or three keys.
const (
	MaxKeySet = 1 << 20 // bytes of the file
	maxKeys   = 32
)

// KeySet holds those RSA keys of a JSON Web Key Set (RFC 7517) that can verify
// RS256 tokens. Each key can verify tokens for any user. If two keys have the
// same kid, both are tried.
type KeySet struct {
	keys     []rsaKey
	ignored  map[string]int // number of keys that can't be used, by reason
	warnings []string
}

// LoadKeySet reads a key set from a file. It refuses a file that other users
// may write or replace. The parameter trust and the kinds of errors have the
// same meaning as in LoadKey. Every error has a hint with a command that fixes
// or inspects the file.
func LoadKeySet(path string, trust guard.Trust) (*KeySet, error) {
	trust = orSelf(trust)
	fix := recipe{
		option: "jwks", command: "curl --fail --output %s URL", owner: " && chmod 0444 %[1]s",
		directory: "(umask 022; mkdir -p %[1]s)", unlock: "chmod a+r %[1]s",
		remark: fmt.Sprintf("URL is the identity provider's jwks_uri; RS256 keys must have at least %d bits", minRSA),
	}
	data, facts, err := content.Read(path, rule("key set", trust), MaxKeySet)
	if err != nil {
		return nil, fix.withHint(err, path, false)
	}
	set, err := ParseKeySet(data)
	if err != nil {
		return nil, fix.withHint(errs.Wrap(err, errs.Invalid, "key set %s", path), path, badDownload(data))
	}
	set.warnings = facts.Warnings
	return set, nil
}

// badDownload reports whether data is an empty or truncated key set, or an HTML
// page instead of a key set.
func badDownload(data []byte) bool {
	text := bytes.TrimSpace(data)
	return len(text) == 0 || text[0] == '<' || text[0] == '{' && !json.Valid(text)
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
	case len(set.keys) > maxKeys:
		return nil, errs.New(errs.Invalid, "%d RS256 keys; at most %d are supported", len(set.keys), maxKeys)
	}
	return set, nil
}

// keyList returns the keys of a set, unparsed.
func keyList(data []byte) (list []json.RawMessage, err error) {
	set, err := parseObject(data)
	if err != nil {
		return nil, errs.New(errs.Invalid, "%v", err)
	}
	if raw, ok := set["keys"]; !ok || json.Unmarshal(raw, &list) != nil {
		return nil, errs.New(errs.Invalid, "no list named keys")
	}
	return list, nil
}

// verify checks the RS256 signature of a token. signed is the text that the
// signature covers. If the token has a kid, verify tries the keys with the same
// kid and the keys without a kid. Otherwise it tries all keys. A nil set is
// treated as a set without keys.
func (s *KeySet) verify(kid, signed string, signature []byte) error {
	if s == nil {
		return errNoKey
	}
	matched := false
	for _, key := range s.keys {
		if kid != "" && key.id != "" && key.id != kid {
			continue
		}
		matched = true
		if jwt.SigningMethodRS256.Verify(signed, signature, key.public) == nil {
			return nil
		}
	}
	if !matched {
		return errors.New("no key matches its kid")
	}
	return errSignature
}

// Answer returns the result of verifying a signature, or Unknown for a nil set.
func (s *KeySet) Answer(sig Signature) Answer {
	switch {
	case s == nil:
		return Unknown
	case s.verify(sig.KeyID, sig.Signed, sig.Bytes) == nil:
		return Good
	}
	return Bad
}

// Len returns the number of keys.
func (s *KeySet) Len() int { return len(s.keys) }

// Warnings returns problems with the set's file that an administrator should
// know about. It leaves out unusable keys, because every identity provider
// publishes some.
func (s *KeySet) Warnings() []string { return s.warnings }

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
