package keeper

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"schedrestd/ipc/work"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Keys are generated only once, because generating RSA keys takes a long time.
var (
	p256 = sync.OnceValue(func() crypto.Signer { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
	p384 = sync.OnceValue(func() crypto.Signer { return must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)) })
	p521 = sync.OnceValue(func() crypto.Signer { return must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader)) })
	rsa2 = sync.OnceValue(func() crypto.Signer { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	rsa4 = sync.OnceValue(func() crypto.Signer { return must(rsa.GenerateKey(rand.Reader, 4096)) })
	edwa = sync.OnceValue(func() crypto.Signer { return must2(ed25519.GenerateKey(rand.Reader)) })
)

func must2(_ ed25519.PublicKey, k ed25519.PrivateKey, err error) crypto.Signer {
	if err != nil {
		panic(err)
	}
	return k
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func pkcs8(key crypto.Signer) string {
	return block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(key)))
}

// certificate returns a self-signed certificate of key.
func certificate(key crypto.Signer, notAfter time.Time) string {
	t := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gateway"}, NotAfter: notAfter}
	return block("CERTIFICATE", must(x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)))
}

var nextYear = time.Now().AddDate(1, 0, 0)

// file returns an open file with the given content.
func file(t testing.TB, text string) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.WriteString(text); err != nil { // this leaves the offset at the end
		t.Fatal(err)
	}
	return f
}

func TestReadPair(t *testing.T) {
	sec1 := block("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(p256().(*ecdsa.PrivateKey))))
	pkcs1 := block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsa2().(*rsa.PrivateKey)))
	p224 := must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader))
	encrypted := "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n"
	tests := []struct {
		name, key, certificates string
		problem                 string // "" if the pair is accepted
	}{
		{"P-256, PKCS#8", pkcs8(p256()), certificate(p256(), nextYear), ""},
		{"P-384", pkcs8(p384()), certificate(p384(), nextYear), ""},
		{"P-521", pkcs8(p521()), certificate(p521(), nextYear), ""},
		{"Ed25519", pkcs8(edwa()), certificate(edwa(), nextYear), ""},
		{"RSA, PKCS#8", pkcs8(rsa2()), certificate(rsa2(), nextYear), ""},
		{"RSA, PKCS#1", pkcs1, certificate(rsa2(), nextYear), ""},
		{"EC with the curve's parameters before it", block("EC PARAMETERS", []byte{6, 1, 1}) + sec1, certificate(p256(), nextYear), ""},
		{"certificates beside the key", certificate(p256(), nextYear) + pkcs8(p256()), certificate(p256(), nextYear), ""},
		{"a chain", pkcs8(p256()), "text before\n" + certificate(p256(), nextYear) + certificate(rsa2(), nextYear), ""},
		{"expired", pkcs8(p256()), certificate(p256(), time.Now().Add(-time.Hour)), ""},

		{"another's certificate", pkcs8(p384()), certificate(p256(), nextYear), "the key does not match the first certificate"},
		{"the chain before the server's own", pkcs8(p256()), certificate(rsa2(), nextYear) + certificate(p256(), nextYear), "the key does not match"},
		{"no key", certificate(p256(), nextYear), certificate(p256(), nextYear), "key file: no private key"},
		{"empty", "", "", "key file: no private key"},
		{"two keys", pkcs8(p256()) + sec1, certificate(p256(), nextYear), "more than one private key"},
		{"no PEM in it", block("PRIVATE KEY", []byte("no key")), certificate(p256(), nextYear), "its PRIVATE KEY cannot be parsed"},
		{"encrypted", encrypted, certificate(rsa2(), nextYear), "is encrypted"},
		{"encrypted PKCS#8", block("ENCRYPTED PRIVATE KEY", []byte{1}), certificate(rsa2(), nextYear), "is encrypted"},
		{"P-224", pkcs8(p224), certificate(p224, nextYear), "curve P-224"},
		{"short RSA", pkcs8(must(x509.ParsePKCS1PrivateKey(shortRSAKey(t)))), certificate(rsa2(), nextYear), "RSA key has 1024 bits"},
		{"no certificate", pkcs8(p256()), "no PEM", "certificate file: no certificate"},
		// The next three files are refused because workers get the certificate
		// file, and no worker may have a key.
		{"one file for both", certificate(p256(), nextYear) + pkcs8(p256()), certificate(p256(), nextYear) + pkcs8(p256()), "certificate file: contains a private key"},
		{"another key beside the certificate", pkcs8(p256()), certificate(p256(), nextYear) + sec1, "certificate file: contains a private key"},
		{"a key that is cut off beside it", pkcs8(p256()), certificate(p256(), nextYear) + "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n", "certificate file: contains a private key"},
		{"an invalid certificate", pkcs8(p256()), certificate(p256(), nextYear) + block("CERTIFICATE", []byte{1}), "a certificate cannot be parsed"},
		{"too long", pkcs8(p256()), certificate(p256(), nextYear) + strings.Repeat("#", work.MaxPEM), "longer than 1048576 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := readPair(file(t, tt.key), file(t, tt.certificates))
			switch {
			case tt.problem == "" && err != nil:
				t.Fatalf("refused: %v", err)
			case tt.problem == "":
				if p.leaf == nil || p.signer == nil {
					t.Errorf("an incomplete pair: %+v", p)
				}
			case err == nil || !strings.Contains(err.Error(), tt.problem):
				t.Errorf("error %v, want %q", err, tt.problem)
			}
		})
	}
}

// shortRSAKey returns an RSA key that is too short. Go generates such a key
// only if GODEBUG permits it.
func shortRSAKey(t *testing.T) []byte {
	t.Setenv("GODEBUG", "rsa1024min=0")
	return x509.MarshalPKCS1PrivateKey(must(rsa.GenerateKey(rand.Reader, 1024)))
}

func TestAuthorities(t *testing.T) {
	if err := checkAuthorities(file(t, "")); err != nil {
		t.Errorf("none: %v", err)
	}
	if err := checkAuthorities(file(t, certificate(p256(), nextYear))); err != nil {
		t.Errorf("one: %v", err)
	}
	if err := checkAuthorities(file(t, certificate(p256(), nextYear)+pkcs8(p256()))); err == nil || !strings.Contains(err.Error(), "client CA file: contains a private key") {
		t.Errorf("with a key: %v", err)
	}
	if err := checkAuthorities(file(t, "no PEM")); err == nil || !strings.Contains(err.Error(), "client CA file: no certificate") {
		t.Errorf("text: %v", err)
	}
}
