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
	"os"
	"path/filepath"
	"time"
)

// certificateTTL is how long the certificates of a site are valid.
const certificateTTL = 30 * 24 * time.Hour

// WriteCertificates creates a CA, and a certificate for each daemon on the
// machine with this name, in the files of dir with the default names. The key of
// the CA is not written anywhere.
func WriteCertificates(dir, node string) error {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA of " + node},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(certificateTTL),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	err = writeCertificate(dir, "ca_cert", ca, ca, nil, caKey, caKey)
	for i, name := range []string{"ctld_cert", "dbd_cert"} {
		key, keyErr := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		cert := &x509.Certificate{SerialNumber: big.NewInt(int64(i) + 2), Subject: pkix.Name{CommonName: name},
			NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, DNSNames: []string{node}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
		if err = errors.Join(err, keyErr); err == nil {
			err = writeCertificate(dir, name, cert, ca, key, key, caKey)
		}
	}
	return err
}

// writeCertificate signs a certificate for the public key of owner with the key
// of the CA, and writes it. It also writes the key secret, unless that is nil.
func writeCertificate(dir, name string, cert, ca *x509.Certificate, secret, owner, caKey *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, cert, ca, &owner.PublicKey, caKey)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
	}
	if err != nil || secret == nil {
		return err
	}
	if der, err = x509.MarshalPKCS8PrivateKey(secret); err != nil {
		return err
	}
	return WritePrivate(filepath.Join(dir, name+"_key.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
}
