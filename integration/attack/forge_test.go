package attack

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	_ "crypto/sha512" // registers SHA-384 and SHA-512, which only attackers use here
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// forger makes tokens without this project's code. With the cluster's keys it
// makes good tokens, as other tools do, and bad tokens. Each of these bad
// tokens has only one defect, so they are the hardest test. Without a key,
// forger makes bad tokens as attackers do.
type forger struct {
	t           testing.TB
	secret      []byte          // the cluster's secret for HS256
	providerKey *rsa.PrivateKey // the identity provider's key, whose public part is in the cluster's key set
	attackerKey *rsa.PrivateKey // a key of the attacker
	kid         string          // key id of the provider's key
	user        string          // user named in the tokens
	trapURL     string          // URL of a server that must never be asked for keys
	now         time.Time
}

// rsaKeys creates the keys once, because that takes time.
var rsaKeys = sync.OnceValues(func() (provider, stranger *rsa.PrivateKey) {
	var err error
	if provider, err = rsa.GenerateKey(rand.Reader, 2048); err == nil {
		stranger, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		panic(err)
	}
	return provider, stranger
})

// newForger returns a forger that has the cluster's secret and the provider's
// key. keySet publishes the public part of the provider's key.
func newForger(t testing.TB, secret []byte, user string) *forger {
	f := &forger{t: t, secret: secret, kid: "provider-1", user: user, now: time.Now()}
	f.providerKey, f.attackerKey = rsaKeys()
	return f
}

func base64url(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// webKey returns a public key as a JSON Web Key. It has no kid when kid is "".
func webKey(key *rsa.PrivateKey, kid string) map[string]any {
	jwk := map[string]any{"kty": "RSA", "n": base64url(key.N.Bytes()), "e": base64url(big.NewInt(int64(key.E)).Bytes())}
	if kid != "" {
		jwk["kid"], jwk["use"], jwk["alg"] = kid, "sig", "RS256"
	}
	return jwk
}

// keySet returns the cluster's key set in the form in which the provider
// publishes it. The key set contains a certificate, which is ignored.
func (f *forger) keySet() string {
	jwk := webKey(f.providerKey, f.kid)
	jwk["x5c"] = []string{base64.StdEncoding.EncodeToString(f.certificate())}
	return f.json(map[string]any{"keys": []any{jwk}}) + "\n"
}

// certificate returns a DER-encoded certificate for the provider's key. It
// returns the same certificate each time.
func (f *forger) certificate() []byte {
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "provider"}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &f.providerKey.PublicKey, f.providerKey)
	harness.Must(f.t, err)
	return der
}

func (f *forger) json(v any) string {
	text, err := json.Marshal(v)
	harness.Must(f.t, err)
	return string(text)
}

// signer makes the signature of a text.
type signer func(signed string) []byte

// mac returns a signer that computes an HMAC with secret.
func mac(hash crypto.Hash, secret []byte) signer {
	return func(signed string) []byte {
		m := hmac.New(hash.New, secret)
		m.Write([]byte(signed))
		return m.Sum(nil)
	}
}

// pkcs1 returns a signer that makes RSASSA-PKCS1-v1_5 signatures, as RS256
// requires.
func (f *forger) pkcs1(hash crypto.Hash, key *rsa.PrivateKey) signer {
	return func(signed string) []byte {
		h := hash.New()
		h.Write([]byte(signed))
		s, err := rsa.SignPKCS1v15(rand.Reader, key, hash, h.Sum(nil))
		harness.Must(f.t, err)
		return s
	}
}

func (f *forger) pss(key *rsa.PrivateKey) signer {
	return func(signed string) []byte {
		h := sha256.Sum256([]byte(signed))
		s, err := rsa.SignPSS(rand.Reader, key, crypto.SHA256, h[:], nil)
		harness.Must(f.t, err)
		return s
	}
}

// constant returns a signer that returns b for every text.
func constant(b []byte) signer { return func(string) []byte { return b } }

// Header and payload of a good token.
const (
	plainHeader = `{"alg":"$alg","typ":"JWT"}`
	plainClaims = `{"iat":$iat,"exp":$exp,"sun":"$user"}`
)

// fill replaces the $words in text.
func (f *forger) fill(text, alg string) string {
	at := func(d time.Duration) string { return strconv.FormatInt(f.now.Add(d).Unix(), 10) }
	return strings.NewReplacer("$alg", alg, "$user", f.user, "$kid", f.kid, "$trap", f.trapURL,
		"$iat", at(-time.Minute), "$exp", at(time.Hour), "$past", at(-30*time.Minute), "$later", at(30*time.Minute)).Replace(text)
}

// token returns a token with the header head and the payload claims. In both
// texts, $alg is replaced with the algorithm alg.
func (f *forger) token(alg, head, claims string, sign signer) string {
	signed := base64url([]byte(f.fill(head, alg))) + "." + base64url([]byte(f.fill(claims, alg)))
	return signed + "." + base64url(sign(signed))
}

// ownSigner returns a signer that uses the cluster's own key for alg, which is
// "HS256" or "RS256".
func (f *forger) ownSigner(alg string) signer {
	if alg == "RS256" {
		return f.pkcs1(crypto.SHA256, f.providerKey)
	}
	return mac(crypto.SHA256, f.secret)
}

// validToken returns a valid token.
func (f *forger) validToken(alg string) string {
	return f.token(alg, plainHeader, plainClaims, f.ownSigner(alg))
}

// encoded is one encoding of a public key. A careless verifier may use the
// encoding as a secret.
type encoded struct {
	name string
	text []byte
}

// encodings returns the encodings of the provider's public key, which is known
// to everyone.
func (f *forger) encodings() []encoded {
	spki, err := x509.MarshalPKIXPublicKey(&f.providerKey.PublicKey)
	harness.Must(f.t, err)
	pkcs1, cert, n := x509.MarshalPKCS1PublicKey(&f.providerKey.PublicKey), f.certificate(), f.providerKey.N.Bytes()
	set, jwk := f.keySet(), webKey(f.providerKey, f.kid)
	inPEM := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	list := []encoded{
		{"the key set's file", []byte(set)}, {"the key set's file without its line end", []byte(strings.TrimSpace(set))},
		{"the JWK", []byte(f.json(jwk))}, {"the bare JWK", []byte(f.json(webKey(f.providerKey, "")))}, {"the kid", []byte(f.kid)},
		{"DER of SPKI", spki}, {"DER of PKCS1", pkcs1}, {"DER of the certificate", cert},
		{"base64 of SPKI", []byte(base64.StdEncoding.EncodeToString(spki))},
		{"base64 of the certificate", []byte(base64.StdEncoding.EncodeToString(cert))},
		{"n", n}, {"n with a zero in front", append([]byte{0}, n...)}, {"n in base64url", []byte(base64url(n))},
		{"n in hexadecimal", []byte(f.providerKey.N.Text(16))}, {"n in decimal", []byte(f.providerKey.N.String())},
		{"e", big.NewInt(int64(f.providerKey.E)).Bytes()}, {"n and e", append(n, 1, 0, 1)},
		{"n and e in base64url", []byte(base64url(n) + "." + base64url([]byte{1, 0, 1}))},
	}
	for kind, der := range map[string][]byte{"PUBLIC KEY": spki, "RSA PUBLIC KEY": pkcs1, "CERTIFICATE": cert} {
		text := inPEM(kind, der)
		list = append(list, encoded{"PEM of " + kind, []byte(text)},
			encoded{"PEM of " + kind + " without its line end", []byte(strings.TrimSpace(text))},
			encoded{"PEM of " + kind + " with CR LF", []byte(strings.ReplaceAll(text, "\n", "\r\n"))})
	}
	return list
}
