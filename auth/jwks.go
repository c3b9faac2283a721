package auth

import (
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"schedrestd/errs"
	"schedrestd/guard"
)

// Bounds of a key set. A token without a kid is tried with every key, so their number bounds what
// one forged token costs; an identity provider publishes two or three.
const (
	MaxKeySet = 1 << 20 // bytes of the file
	maxKeys   = 32
	minRSA    = 2048 // bits
	maxRSA    = 8192
)

// KeySet is the RSA keys of a JSON Web Key Set (RFC 7517) with which RS256 tokens are verified.
// Each may sign for any user. Only n and e count of a key, besides what says whether it is for
// signatures at all: certificates (x5c, x5t) are not looked at.
type KeySet struct {
	keys     []rsaKey
	warnings []string
}

type rsaKey struct {
	id     string // kid; "" when it has none
	public *rsa.PublicKey
}

// LoadKeySet reads the key set in the file path and refuses one that others may write or swap. owners
// are as for LoadKey, and so are the kinds of errors.
func LoadKeySet(path string, owners ...uint32) (*KeySet, error) {
	data, facts, err := guard.Read(path, guard.Rule{What: "key set", Owners: orRoot(owners)}, MaxKeySet)
	if err != nil {
		return nil, err
	}
	set, err := ParseKeySet(data)
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "key set %s", path)
	}
	for i, w := range set.warnings {
		set.warnings[i] = fmt.Sprintf("key set %s: %s", path, w)
	}
	set.warnings = append(set.warnings, facts.Warnings...)
	return set, nil
}

// ParseKeySet reads a key set. Keys of other kinds and for other purposes are passed over, as an
// identity provider publishes them too. What would be a risk is an error, and the whole set is
// refused: a private or secret key in it, an RSA key that is too small, no key at all that
// could be used. No error has a key in it.
func ParseKeySet(data []byte) (*KeySet, error) {
	top, err := parseObject(data)
	if err != nil {
		return nil, keySetError(err)
	}
	var list []json.RawMessage
	if raw, ok := top["keys"]; !ok || json.Unmarshal(raw, &list) != nil {
		return nil, keySetError(errors.New("no list called keys"))
	}
	set := &KeySet{}
	for i, raw := range list {
		o, err := parseObject(raw)
		if err != nil {
			return nil, keySetError(fmt.Errorf("key %d: %w", i+1, err))
		}
		key, passedOver, err := o.rsa()
		switch {
		case err != nil:
			return nil, keySetError(fmt.Errorf("key %d: %w", i+1, err))
		case passedOver != "":
			set.warnings = append(set.warnings, fmt.Sprintf("key %d is passed over: %s", i+1, passedOver))
		default:
			set.keys = append(set.keys, key)
		}
	}
	switch {
	case len(set.keys) == 0:
		return nil, keySetError(errors.New("no RSA key for signatures with RS256"))
	case len(set.keys) > maxKeys:
		return nil, keySetError(fmt.Errorf("%d keys, at most %d are taken", len(set.keys), maxKeys))
	}
	return set, nil
}

func keySetError(err error) error {
	return errs.New(errs.Invalid, "%v", err).
		WithHint("fetch it anew from the jwks_uri of the identity provider (curl --fail --output FILE URL), whose RS256 keys have %d bits or more", minRSA)
}

// secrets are the members of a JSON Web Key (RFC 7518, 6.3.2 and 6.4) that nobody else may know.
var secrets = []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"}

// rsa makes a key of a JSON Web Key. passedOver says why it is of no use here; err what is wrong
// with it.
func (o object) rsa() (key rsaKey, passedOver string, err error) {
	for _, name := range secrets {
		if _, ok := o[name]; ok {
			return key, "", fmt.Errorf("%s is in it, a part of a private or secret key: a key set has public keys alone", name)
		}
	}
	kind, _, err := o.text("kty")
	if err != nil {
		return key, "", errors.New("kty is not a text")
	}
	if kind != "RSA" {
		return key, "it is no RSA key", nil
	}
	if passedOver, err = o.purpose(); passedOver != "" || err != nil {
		return key, passedOver, err
	}
	if key.id, _, err = o.text("kid"); err != nil {
		return key, "", errors.New("kid is not a text")
	}
	key.public, err = o.public()
	return key, "", err
}

// purpose says why a key is not for verifying RS256, "" when it is.
func (o object) purpose() (passedOver string, err error) {
	if use, ok, err := o.text("use"); err != nil {
		return "", errors.New("use is not a text")
	} else if ok && use != "sig" {
		return "its use is not sig", nil
	}
	if alg, ok, err := o.text("alg"); err != nil {
		return "", errors.New("alg is not a text")
	} else if ok && alg != rs256 {
		return "its alg is not " + rs256, nil
	}
	if raw, ok := o["key_ops"]; ok {
		var ops []string
		if json.Unmarshal(raw, &ops) != nil {
			return "", errors.New("key_ops is not a list of texts")
		}
		if !slices.Contains(ops, "verify") {
			return "its key_ops have no verify", nil
		}
	}
	return "", nil
}

// public is the key of n and e.
func (o object) public() (*rsa.PublicKey, error) {
	n, err := o.number("n")
	if err != nil {
		return nil, err
	}
	e, err := o.number("e")
	if err != nil {
		return nil, err
	}
	bits := n.BitLen()
	switch {
	case bits < minRSA || bits > maxRSA:
		return nil, fmt.Errorf("an RSA key of %d bits, not of %d to %d", bits, minRSA, maxRSA)
	case n.Bit(0) == 0:
		return nil, errors.New("n is even")
	case e.BitLen() > 31 || e.Int64() < 3 || e.Bit(0) == 0:
		return nil, errors.New("e is not an odd number from 3 to 2^31-1")
	}
	return &rsa.PublicKey{N: n, E: int(e.Int64())}, nil
}

// number is a whole number in base64url, big end first. Zeros in front and padding behind are taken: some
// providers write them, and a public key has no form that could be walked around.
func (o object) number(name string) (*big.Int, error) {
	text, ok, err := o.text(name)
	if !ok || err != nil {
		return nil, fmt.Errorf("%s is not a text", name)
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil, fmt.Errorf("%s is not base64url", name)
	}
	return new(big.Int).SetBytes(raw), nil
}

// verify checks an RS256 signature of the text signed. A kid chooses the keys that have the same, and
// those that have none; without one every key is tried. A nil set has no key.
func (s *KeySet) verify(kid, signed string, signature []byte) error {
	if s == nil {
		return errNoKey
	}
	tried := false
	for _, key := range s.keys {
		if kid != "" && key.id != "" && key.id != kid {
			continue
		}
		tried = true
		if jwt.SigningMethodRS256.Verify(signed, signature, key.public) == nil {
			return nil
		}
	}
	if !tried {
		return errors.New("no key has its kid")
	}
	return errSignature
}

// Answer is what the set says of a token's signature; a nil set says nothing.
func (s *KeySet) Answer(sig Signature) Answer {
	switch {
	case s == nil:
		return Unknown
	case s.verify(sig.KeyID, sig.Signed, sig.Bytes) == nil:
		return Good
	}
	return Bad
}

// Len is the number of keys.
func (s *KeySet) Len() int { return len(s.keys) }

// Warnings is what an administrator should know of the file that the set came from.
func (s *KeySet) Warnings() []string { return s.warnings }

// orRoot is who may own a file of keys: owners, or this process's own user when there are none, and root.
func orRoot(owners []uint32) []uint32 {
	if len(owners) == 0 {
		owners = []uint32{uint32(os.Geteuid())}
	}
	if !slices.Contains(owners, 0) {
		owners = append(slices.Clone(owners), 0)
	}
	return owners
}
