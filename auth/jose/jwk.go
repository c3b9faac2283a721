package jose

import (
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// Limits on the size of an RSA key, in bits. RFC 7518 3.3 requires at least
// 2048. With more than 8192 bits, verifying forged tokens would cost too much.
const (
	MinRSA = 2048
	maxRSA = 8192
)

// An rsaKey is an RSA key from a JSON Web Key Set. In the JSON text, the
// members n and e contain the key, and kid contains its id. The members kty,
// use, alg and key_ops restrict the use of the key. Certificates (x5c, x5t,
// x5u) are ignored, so no certificate chain is verified.
type rsaKey struct {
	id     string // kid; "" for none
	public *rsa.PublicKey
}

// secretMembers lists the members of a JSON Web Key that are secret. RFC 7518
// (6.2.2, 6.3.2 and 6.4) defines most of them. The others belong to the key
// type AKP. A set that contains a secret member is refused, because workers get
// the set, and every user may read the set's file.
var secretMembers = []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"}

// parseKey parses a JSON Web Key (RFC 7517, 4). If the key is valid but can't
// be used here, unusable contains the reason. A member with the value null is
// treated as absent, because some providers write all members for every key.
func parseKey(data []byte) (key rsaKey, unusable string, err error) {
	o, err := ParseObject(data)
	if err != nil {
		return key, "", err
	}
	maps.DeleteFunc(o, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	for _, name := range secretMembers {
		if _, ok := o[name]; ok {
			return key, "", fmt.Errorf("contains %s, part of a private or secret key; a key set must hold only public keys", name)
		}
	}
	if unusable, err = o.unusableReason(); unusable != "" || err != nil {
		return key, unusable, err
	}
	if key.id, _, err = o.Text("kid"); err != nil {
		return key, "", errors.New("kid is not a string")
	}
	key.public, err = o.rsa()
	return key, "", err
}

// unusableReason returns the reason why a key can't verify RS256 signatures, or
// "" if it can.
func (o Object) unusableReason() (reason string, err error) {
	for _, member := range []struct{ name, want string }{{"kty", "RSA"}, {"use", "sig"}, {"alg", "RS256"}} {
		value, ok, err := o.Text(member.name)
		switch {
		case err != nil:
			return "", fmt.Errorf("%s is not a string", member.name)
		case value != member.want && (ok || member.name == "kty"):
			return member.name + " is not " + member.want, nil
		}
	}
	if raw, ok := o["key_ops"]; ok {
		var ops []string
		if json.Unmarshal(raw, &ops) != nil {
			return "", errors.New("key_ops is not a list of strings")
		}
		if !slices.Contains(ops, "verify") {
			return "key_ops does not include verify", nil
		}
	}
	return "", nil
}

// rsa returns the public key that consists of the members n and e.
func (o Object) rsa() (*rsa.PublicKey, error) {
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
	case bits < MinRSA || bits > maxRSA:
		return nil, fmt.Errorf("RSA key has %d bits; must have %d to %d", bits, MinRSA, maxRSA)
	case n.Bit(0) == 0:
		return nil, errors.New("n is even")
	case e.BitLen() > 31 || e.Int64() < 3 || e.Bit(0) == 0:
		return nil, errors.New("e is not an odd number from 3 to 2^31-1") // the limits of crypto/rsa
	case roca(n):
		return nil, errors.New("RSA key is vulnerable to ROCA (CVE-2017-15361): its private key can be computed")
	}
	return &rsa.PublicKey{N: n, E: int(e.Int64())}, nil
}

// number parses the named member, which contains a big-endian whole number in
// base64url. It accepts leading zero bytes and padding, which some providers
// write. This is harmless, because no check compares the text of public keys.
func (o Object) number(name string) (*big.Int, error) {
	text, ok, err := o.Text(name)
	if !ok || err != nil {
		return nil, fmt.Errorf("%s is not a string", name)
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil, fmt.Errorf("%s is not base64url", name)
	}
	return new(big.Int).SetBytes(raw), nil
}
