package auth

import (
	"bytes"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
)

// signRSA returns a token. Like sign, it uses only the standard library.
func signRSA(t testing.TB, key *rsa.PrivateKey, header, claims string) string {
	t.Helper()
	signed := b64(header) + "." + b64(claims)
	return signed + "." + base64.RawURLEncoding.EncodeToString(signatureOf(t, key, signed))
}

func signatureOf(t testing.TB, key *rsa.PrivateKey, signed string) []byte {
	t.Helper()
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	must(t, err)
	return signature
}

// provider returns a verifier that has only the provider's key, under the given
// kid.
func provider(t testing.TB, kid string) Verifier {
	t.Helper()
	set := parsedSet(t, jwk(&providerKey().PublicKey, fmt.Sprintf(`,"kid":%q`, kid)))
	return Verifier{Keys: func() *KeySet { return set }, Now: clock}
}

// TestOtherMakers checks that tokens from other implementations are valid, for
// both algorithms, and that their claims are checked in the same way.
func TestOtherMakers(t *testing.T) {
	v := provider(t, "a")
	v.Key, v.Rules.UserField = testKey(t), "preferred_username"
	for _, test := range []struct {
		name, token string
		want        Claims
	}{
		{"HS256", sign(`{"alg":"HS256"}`, goodClaims), Claims{User: "alice", Algorithm: "HS256"}},
		{"HS256 with a kid", sign(`{"alg":"HS256","kid":"x"}`, goodClaims), Claims{User: "alice", Algorithm: "HS256", KeyID: "x"}},
		{"RS256", signRSA(t, providerKey(), `{"alg":"RS256"}`, goodClaims), Claims{User: "alice", Algorithm: "RS256"}},
		{"RS256 of an identity provider", signRSA(t, providerKey(), `{"alg":"RS256","typ":"JWT","kid":"a"}`,
			claim(`"iss":"https://idp/realms/x","aud":["account"],"azp":"sched","sub":"0-1","preferred_username":"alice","scope":"openid"`)),
			Claims{User: "alice", Algorithm: "RS256", KeyID: "a"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := v.Verify(test.token)
			must(t, err)
			got.IssuedAt, got.Expires = test.want.IssuedAt, test.want.Expires
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// TestConfusion checks that the type of the key determines the algorithm (RFC
// 8725 2.1 and 3.1). An attacker must not be able to use any encoding of the
// public key as a secret, or to use a secret as a public key.
func TestConfusion(t *testing.T) {
	public := &providerKey().PublicKey
	pkix, err := x509.MarshalPKIXPublicKey(public)
	must(t, err)
	pkcs1 := x509.MarshalPKCS1PublicKey(public)
	text := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	own := jwk(public, `,"kid":"a"`)
	secrets := map[string][]byte{
		"PKIX": pkix, "PKCS 1": pkcs1, "PEM of PKIX": text("PUBLIC KEY", pkix), "PEM of PKCS 1": text("RSA PUBLIC KEY", pkcs1),
		"PEM without its last line end": bytes.TrimSpace(text("PUBLIC KEY", pkix)),
		"n":                             public.N.Bytes(), "n in base64url": []byte(number(public.N)), "n in decimal": []byte(public.N.String()),
		"the JSON Web Key": []byte(own), "the key set": []byte(keySet(own)), "nothing": nil, "e": {1, 0, 1},
	}
	for name, key := range secrets {
		t.Run("HS256 with the public key as "+name, func(t *testing.T) {
			signed := b64(`{"alg":"HS256","kid":"a"}`) + "." + b64(goodClaims)
			mac := hmac.New(sha256.New, key)
			mac.Write([]byte(signed))
			token := signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
			_, err := provider(t, "a").Verify(token)
			refused(t, err, errNoKey.Error(), token)
			verifier := provider(t, "a")
			verifier.Key = testKey(t)
			_, err = verifier.Verify(token)
			refused(t, err, errSignature.Error(), token)
		})
	}
	for _, test := range []struct {
		name, token, reason string
		v                   Verifier
	}{
		{"RS256 where the secret key is alone", signRSA(t, providerKey(), `{"alg":"RS256"}`, goodClaims), errNoKey.Error(), Verifier{Key: testKey(t), Now: clock}},
		{"RS256 where the set is gone", signRSA(t, providerKey(), `{"alg":"RS256"}`, goodClaims), errNoKey.Error(), Verifier{Keys: func() *KeySet { return nil }, Now: clock}},
		{"RS256, by another issuer", signRSA(t, otherKey(), `{"alg":"RS256"}`, goodClaims), errSignature.Error(), provider(t, "a")},
		{"RS256, by another issuer under the key's kid", signRSA(t, otherKey(), `{"alg":"RS256","kid":"a"}`, goodClaims), errSignature.Error(), provider(t, "a")},
		{"the signature of RS256 under RS384", signRSA(t, providerKey(), `{"alg":"RS384"}`, goodClaims), "alg is not", provider(t, "a")},
		{"the signature of RS256 under PS256", signRSA(t, providerKey(), `{"alg":"PS256"}`, goodClaims), "alg is not", provider(t, "a")},
		{"the signature of RS256 under HS256", signRSA(t, providerKey(), `{"alg":"HS256"}`, goodClaims), "wrong length", provider(t, "a")},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := test.v.Verify(test.token)
			refused(t, err, test.reason, test.token)
		})
	}
}

// TestKeysOfTheToken checks that keys in a token, and keys that a token refers
// to, are ignored. Only the administrator supplies keys (RFC 8725 3.10).
func TestKeysOfTheToken(t *testing.T) {
	stranger := jwk(&otherKey().PublicKey, `,"kid":"a","alg":"RS256","use":"sig"`)
	for name, member := range map[string]string{
		"an embedded key":        `"jwk":` + stranger,
		"a set at an address":    `"jku":"https://attacker/keys"`,
		"a set in a file":        `"jku":"file:///tmp/keys"`,
		"a chain":                `"x5c":["MIIC"]`,
		"a chain at an address":  `"x5u":"https://attacker/chain"`,
		"a path as kid":          `"kid":"../../../../dev/null"`,
		"a query as kid":         `"kid":"x' UNION SELECT 'key"`,
		"a command as kid":       `"kid":"a;id|$(id)"`,
		"the kid with a zero":    `"kid":"a\u0000"`,
		"the key's kid":          `"kid":"a"`,
		"an empty kid":           `"kid":""`,
		"the key as kid":         `"kid":"` + number(otherKey().N) + `"`,
		"everything at once":     `"kid":"a","jku":"https://attacker/keys","x5u":"https://attacker","jwk":` + stranger,
		"a thumbprint of no key": `"x5t":"AA","x5t#S256":"AA"`,
	} {
		t.Run(name, func(t *testing.T) {
			v := provider(t, "a")
			v.Key = testKey(t)
			token := signRSA(t, otherKey(), `{"alg":"RS256",`+member+`}`, goodClaims)
			if _, err := v.Verify(token); errs.KindOf(err) != errs.Unauthenticated {
				t.Errorf("RS256: got %v", err)
			}
			signed := b64(`{"alg":"HS256",`+member+`}`) + "." + b64(goodClaims)
			mac := hmac.New(sha256.New, nil) // the content of /dev/null
			mac.Write([]byte(signed))
			if _, err := v.Verify(signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))); errs.KindOf(err) != errs.Unauthenticated {
				t.Errorf("HS256: got %v", err)
			}
		})
	}
}

// TestAttacksSignedByTheProvider checks that Verify refuses invalid claims even
// if the RS256 signature is genuine (RFC 8725 3.3). It uses the claims of the
// HS256 tokens in attacks.
func TestAttacksSignedByTheProvider(t *testing.T) {
	v, count := provider(t, "a"), 0
	for _, test := range attacks {
		header, claims := headerOf(test.token + "..")
		if header != goodHeader || sign(header, claims) != test.token {
			continue // the attack is on the form
		}
		count++
		t.Run(test.name, func(t *testing.T) {
			token := signRSA(t, providerKey(), `{"alg":"RS256","kid":"a"}`, claims)
			_, err := v.Verify(token)
			refused(t, err, test.why, token)
			forged := signRSA(t, otherKey(), `{"alg":"RS256","kid":"a"}`, claims)
			_, err = v.Verify(forged)
			refused(t, err, errSignature.Error(), forged)
		})
	}
	if count < 25 {
		t.Errorf("only %d attacks by headers", count)
	}
}
