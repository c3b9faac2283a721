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

// Altered returns token with one changed letter in the middle of its signature.
func Altered(token string) string { return AlteredAt(token, 20) }

// AlteredAt returns token with one changed letter at that place of its
// signature.
func AlteredAt(token string, place int) string {
	at, letter := strings.LastIndexByte(token, '.')+place, "A"
	if token[at] == 'A' {
		letter = "B"
	}
	return token[:at] + letter + token[at+1:]
}

// PublicJWK returns a public key as a JSON Web Key, as identity providers
// publish it.
func PublicJWK(key *rsa.PublicKey, kid string) string {
	text, _ := json.Marshal(map[string]string{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": kid,
		"n": base64.RawURLEncoding.EncodeToString(key.N.Bytes()), "e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes())})
	return string(text)
}

func SignedBy(t *testing.T, key *rsa.PrivateKey, header, claims string) string {
	t.Helper()
	text := Unsigned(header, claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	Must(t, err)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func Unsigned(header, claims string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
}

// Forge makes a token with a foreign library, as other tools and attackers do.
func Forge(t *testing.T, key []byte, method jwt.SigningMethod, claims jwt.MapClaims) string {
	t.Helper()
	var signer any = key
	if method == jwt.SigningMethodNone {
		signer = jwt.UnsafeAllowNoneSignatureType
	}
	token, err := jwt.NewWithClaims(method, claims).SignedString(signer)
	Must(t, err)
	return token
}
