package site

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"path/filepath"
	"time"
)

// certificateTTL is how long the certificates of a site are valid.
const certificateTTL = 30 * 24 * time.Hour

// writeCertificates creates a CA, and a certificate for each daemon, in the
// files with the default names. The key of the CA is not written anywhere.
func (s *Site) writeCertificates() error {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA of " + filepath.Base(s.Dir)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(certificateTTL),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	err = s.writeCertificate("ca_cert", ca, ca, nil, caKey, caKey)
	for i, name := range []string{"ctld_cert", "dbd_cert"} {
		key, keyErr := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		cert := &x509.Certificate{SerialNumber: big.NewInt(int64(i) + 2), Subject: pkix.Name{CommonName: name},
			NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, DNSNames: []string{s.Node}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
		if err = errors.Join(err, keyErr); err == nil {
			err = s.writeCertificate(name, cert, ca, key, key, caKey)
		}
	}
	return err
}

// writeCertificate signs a certificate for the public key of owner with the key
// of the CA, and writes it. It also writes the key secret, unless that is nil.
func (s *Site) writeCertificate(name string, cert, ca *x509.Certificate, secret, owner, caKey *ecdsa.PrivateKey) error {
	write := func(suffix, kind string, der []byte, err error) error {
		if err != nil {
			return err
		}
		path := filepath.Join(s.Dir, "etc", name+suffix+".pem")
		return WritePrivate(path, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, ca, &owner.PublicKey, caKey)
	if err = write("", "CERTIFICATE", der, err); err != nil || secret == nil {
		return err
	}
	der, err = x509.MarshalPKCS8PrivateKey(secret)
	return write("_key", "PRIVATE KEY", der, err)
}
