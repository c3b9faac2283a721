package auth

import (
	"bytes"
	"encoding/json"
	"fmt"

	"schedrestd/auth/jose"
	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/internal/guard/content"
)

// KeySet is a set of public keys, from a file.
type KeySet struct {
	jose.KeySet
	warnings []string
}

// ParseKeySet parses a key set, like jose.ParseKeySet.
func ParseKeySet(data []byte) (*KeySet, error) {
	set, err := jose.ParseKeySet(data)
	if err != nil {
		return nil, err
	}
	return &KeySet{KeySet: *set}, nil
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
		remark: fmt.Sprintf("URL is the identity provider's jwks_uri; RS256 keys must have at least %d bits", jose.MinRSA),
	}
	data, facts, err := content.Read(path, rule("key set", trust), jose.MaxKeySet)
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

// verify checks the RS256 signature of a token. A nil set is treated as a set
// without keys.
func (s *KeySet) verify(kid, signed string, signature []byte) error {
	if s == nil {
		return errNoKey
	}
	return s.Verify(kid, signed, signature)
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

// Warnings returns problems with the set's file that an administrator should
// know about. It leaves out unusable keys, because every identity provider
// publishes some.
func (s *KeySet) Warnings() []string { return s.warnings }
