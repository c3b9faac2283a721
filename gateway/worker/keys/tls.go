package keys

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	"schedrestd/gateway/worker/broker"
	"schedrestd/ipc/work"
)

// loadTLS loads the server's certificate, and the CAs for client certificates.
// If a file can't be used, the worker serves no https:// connections. Only a bug
// can cause this, because the keeper has already checked the files.
func (k *Keys) loadTLS(m *work.Keys, certificate, authorities *os.File) {
	if !m.TLS {
		return
	}
	list, err := readCertificates(certificate)
	var clients *x509.CertPool
	if err == nil && m.Authorities {
		clients, err = readClientCAs(authorities)
	}
	if err != nil {
		slog.Error("certificates from the parent rejected", "error", err)
		k.certUnusable.Store(true)
		return
	}
	k.certUnusable.Store(false)
	c := tls.Certificate{Leaf: list[0], PrivateKey: remoteKey{keeper: k.keeper, public: list[0].PublicKey}}
	for _, cert := range list {
		c.Certificate = append(c.Certificate, cert.Raw)
	}
	config := &tls.Config{
		GetCertificate: certificateFunc(c),
		MinVersion:     tls.VersionTLS13,
		NextProtos:     []string{"h2", "http/1.1"},
	}
	if m.TLS12 {
		config.MinVersion = tls.VersionTLS12
	}
	if m.Authorities {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, clients
	}
	if len(m.Tickets) > 0 {
		config.SetSessionTicketKeys(m.Tickets)
	}
	k.tls.Store(&serverTLS{config, list[0]})
}

// TLS returns the configuration for https:// listeners, with the public
// certificates and the keys for session tickets. It returns nil if there is no
// certificate.
func (k *Keys) TLS() *tls.Config {
	if s := k.tls.Load(); s != nil {
		return s.config
	}
	return nil
}

// readClientCAs reads the CAs of clients.
func readClientCAs(f *os.File) (*x509.CertPool, error) {
	list, err := readCertificates(f)
	p := x509.NewCertPool()
	for _, cert := range list {
		p.AddCert(cert)
	}
	return p, err
}

// readCertificates reads f with pread, because other workers read the same open
// file and share its offset.
func readCertificates(f *os.File) (list []*x509.Certificate, err error) {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, work.MaxPEM))
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	if list == nil {
		return nil, errors.New("no certificate in PEM")
	}
	return list, nil
}

// certificateFunc returns a function that crypto/tls calls to get the
// certificate for each handshake. That function returns c with a new remoteKey
// for the handshake. If the keeper does not sign, this remoteKey records the
// failure in the facts of the handshake's context.
func certificateFunc(c tls.Certificate) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	key, _ := c.PrivateKey.(remoteKey)
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		cert, signer := c, key
		signer.facts, _ = hello.Context().Value(factsKey{}).(*facts)
		cert.PrivateKey = signer
		return &cert, nil
	}
}

// A remoteKey is a private key that the keeper holds. The keeper signs only
// messages, not digests.
type remoteKey struct {
	keeper *broker.Keeper
	public crypto.PublicKey
	facts  *facts // of the handshake that uses this key; may be nil
}

// Public returns the public key of the certificate.
func (k remoteKey) Public() crypto.PublicKey { return k.public }

// Sign implements crypto.Signer. It always fails. The keeper signs no digests,
// because it has to check the whole message that it signs.
func (k remoteKey) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New("the keeper does not sign digests")
}

// SignMessage implements crypto.MessageSigner, which crypto/tls prefers to
// crypto.Signer.
func (k remoteKey) SignMessage(_ io.Reader, message []byte, o crypto.SignerOpts) ([]byte, error) {
	scheme, err := schemeOf(k.public, o)
	if err != nil {
		return nil, err
	}
	var source string
	if k.facts != nil {
		source = k.facts.source
	}
	signature, err := k.keeper.Sign(source, uint16(scheme), message)
	if err != nil && k.facts != nil {
		k.facts.unsigned = true
	}
	return signature, err
}

// schemeOf returns the signature scheme that crypto/tls has chosen. crypto/tls
// passes only the hash and the padding, so schemeOf also needs the public key.
func schemeOf(public crypto.PublicKey, o crypto.SignerOpts) (tls.SignatureScheme, error) {
	var schemes [3]tls.SignatureScheme // with SHA-256, SHA-384 and SHA-512
	_, pss := o.(*rsa.PSSOptions)
	switch public.(type) {
	case *ecdsa.PublicKey:
		schemes = [3]tls.SignatureScheme{tls.ECDSAWithP256AndSHA256, tls.ECDSAWithP384AndSHA384, tls.ECDSAWithP521AndSHA512}
	case *rsa.PublicKey:
		schemes = [3]tls.SignatureScheme{tls.PKCS1WithSHA256, tls.PKCS1WithSHA384, tls.PKCS1WithSHA512}
		if pss {
			schemes = [3]tls.SignatureScheme{tls.PSSWithSHA256, tls.PSSWithSHA384, tls.PSSWithSHA512}
		}
	case ed25519.PublicKey:
		return tls.Ed25519, nil
	}
	i := slices.Index([]crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512}, o.HashFunc())
	if i < 0 || schemes[i] == 0 {
		return 0, fmt.Errorf("no signature scheme for a %T with %v", public, o.HashFunc())
	}
	return schemes[i], nil
}
