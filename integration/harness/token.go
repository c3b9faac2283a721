package harness

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

// TamperSignature returns token with one changed letter in the middle of its
// signature.
func TamperSignature(token string) string { return TamperSignatureAt(token, 20) }

// TamperSignatureAt returns token with one changed letter in its signature: the
// letter that is offset bytes after the last dot.
func TamperSignatureAt(token string, offset int) string {
	pos, letter := strings.LastIndexByte(token, '.')+offset, "A"
	if token[pos] == 'A' {
		letter = "B"
	}
	return token[:pos] + letter + token[pos+1:]
}

// PublicJWK returns a public key as a JSON Web Key, as identity providers
// publish it.
func PublicJWK(key *rsa.PublicKey, kid string) string {
	text, _ := json.Marshal(map[string]string{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": kid,
		"n": base64.RawURLEncoding.EncodeToString(key.N.Bytes()),
		"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes())})
	return string(text)
}

// SignToken returns a token with the given header and claims, signed with
// RS256.
func SignToken(t *testing.T, key *rsa.PrivateKey, header, claims string) string {
	t.Helper()
	text := UnsignedToken(header, claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	Must(t, err)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// UnsignedToken returns a token without its signature and the dot before it.
func UnsignedToken(header, claims string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
}

// NewToken makes a token with a library of another project. Other tools, and
// attackers, also use such libraries.
func NewToken(t *testing.T, key []byte, method jwt.SigningMethod, claims jwt.MapClaims) string {
	t.Helper()
	var signer any = key
	if method == jwt.SigningMethodNone {
		signer = jwt.UnsafeAllowNoneSignatureType
	}
	token, err := jwt.NewWithClaims(method, claims).SignedString(signer)
	Must(t, err)
	return token
}
