// Package tlstest makes certificates for tests of TLS.
package tlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// An Issuer signs certificates: it is a CA, or an intermediate CA.
type Issuer struct {
	Certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	chain       [][]byte // its own certificate and those above it, without the CA's
}

// NewCA returns a CA. The functions in change adjust its certificate.
func NewCA(t testing.TB, change ...func(*x509.Certificate)) *Issuer {
	t.Helper()
	return newIssuer(t, nil, change)
}

// Intermediate returns an issuer whose certificate i has signed.
func (i *Issuer) Intermediate(t testing.TB, change ...func(*x509.Certificate)) *Issuer {
	t.Helper()
	return newIssuer(t, i, change)
}

func newIssuer(t testing.TB, parent *Issuer, change []func(*x509.Certificate)) *Issuer {
	t.Helper()
	template := newTemplate(t)
	template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign
	for _, f := range change {
		f(template)
	}
	i := &Issuer{key: newKey(t)}
	var der []byte
	if parent == nil {
		der = sign(t, template, template, i.key, i.key)
	} else {
		der = sign(t, template, parent.Certificate, i.key, parent.key)
		i.chain = append([][]byte{der}, parent.chain...)
	}
	var err error
	if i.Certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return i
}

// PEM returns the certificate of i.
func (i *Issuer) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate.Raw})
}

// Issue returns a certificate of a server at 127.0.0.1 with the name
// ctl.example, with its key. The functions in change adjust it.
func (i *Issuer) Issue(t testing.TB, change ...func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	template := newTemplate(t)
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames, template.IPAddresses = []string{"ctl.example"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	for _, f := range change {
		f(template)
	}
	key := newKey(t)
	return tls.Certificate{Certificate: append([][]byte{sign(t, template, i.Certificate, key, i.key)}, i.chain...), PrivateKey: key}
}

// EncodePEM returns the chain and the key of a certificate.
func EncodePEM(t testing.TB, c tls.Certificate) (chain, key []byte) {
	t.Helper()
	for _, der := range c.Certificate {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return chain, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// Expired makes a certificate expire an hour ago.
func Expired(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }

func newTemplate(t testing.TB) *x509.Certificate {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<60))
	if err != nil {
		t.Fatal(err)
	}
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "test " + serial.String()}, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour)}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, template, parent *x509.Certificate, owner, signer *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &owner.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	return der
}
