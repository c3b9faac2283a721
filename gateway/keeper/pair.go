package keeper

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"schedrestd/ipc/work"
)

// pair is a private key with its certificate.
type pair struct {
	tls12  bool // whether to sign messages of TLS 1.2
	signer crypto.Signer
	leaf   *x509.Certificate
}

// Limits on the length of an RSA key, in bits. A signature by a longer key
// would not fit into query.Signed.
const (
	minRSA = 2048
	maxRSA = 8192
)

// readPair reads a key and its certificates. The first certificate is the
// server's own. readPair refuses a key that does not belong to this
// certificate, because every handshake would fail.
func readPair(key, certificates *os.File) (*pair, error) {
	signer, err := readKey(key)
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	leaf, err := readLeaf(certificates)
	if err != nil {
		return nil, fmt.Errorf("certificate file: %w", err)
	}
	public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(leaf.PublicKey) {
		return nil, errors.New("the key does not match the first certificate in the certificate file")
	}
	return &pair{signer: signer, leaf: leaf}, nil
}

// content returns the whole content of f. It does not depend on the file's
// offset, which other processes may change.
func content(f *os.File) ([]byte, error) {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, work.MaxPEM+1))
	switch {
	case err != nil:
		return nil, errors.New("cannot be read")
	case len(text) > work.MaxPEM:
		return nil, fmt.Errorf("longer than %d bytes", work.MaxPEM)
	}
	return text, nil
}

// readKey returns the private key in f, which must contain only one. It ignores
// other blocks, such as curve parameters or certificates.
func readKey(f *os.File) (signer crypto.Signer, err error) {
	text, err := content(f)
	if err != nil {
		return nil, err
	}
	defer clear(text)
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		key, err := parseKey(block)
		clear(block.Bytes)
		switch {
		case err != nil:
			return nil, err
		case key == nil:
		case signer != nil:
			return nil, errors.New("more than one private key")
		default:
			signer = key
		}
	}
	if signer == nil {
		return nil, errors.New("no private key in PEM")
	}
	return signer, nil
}

// parseKey returns the private key in block, or nil if block contains something
// else. Its errors are logged, so they do not include the parser's errors,
// which could quote the key.
func parseKey(block *pem.Block) (crypto.Signer, error) {
	var key any
	var err error
	switch {
	case block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "":
		return nil, errors.New("the private key is encrypted; remove its passphrase")
	case block.Type == "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case block.Type == "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case block.Type == "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("its %s cannot be parsed", block.Type)
	}
	return checkKey(key)
}

// checkKey refuses a key whose type or size the keeper does not support.
func checkKey(key any) (crypto.Signer, error) {
	switch key := key.(type) {
	case *rsa.PrivateKey:
		if n := key.N.BitLen(); n < minRSA || n > maxRSA {
			return nil, fmt.Errorf("RSA key has %d bits; must have %d to %d", n, minRSA, maxRSA)
		}
		return key, nil
	case *ecdsa.PrivateKey:
		if !slices.Contains([]elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()}, key.Curve) {
			return nil, fmt.Errorf("ECDSA key uses curve %s; must use P-256, P-384 or P-521", key.Curve.Params().Name)
		}
		return key, nil
	case ed25519.PrivateKey:
		return key, nil
	}
	return nil, errors.New("unsupported key type; must be RSA, ECDSA or Ed25519")
}

// readLeaf returns the first certificate in f. It refuses f if any certificate
// can't be parsed, because clients get all of them.
func readLeaf(f *os.File) (leaf *x509.Certificate, err error) {
	text, err := content(f)
	if err != nil {
		return nil, err
	}
	return leafOf(text)
}

// checkAuthorities refuses a file of client CAs if workers could not use it.
// With such a file, workers would reject every client. An empty file means that
// there are no client CAs.
func checkAuthorities(f *os.File) error {
	text, err := content(f)
	if err == nil && len(text) > 0 {
		_, err = leafOf(text)
	}
	if err != nil {
		return fmt.Errorf("client CA file: %w", err)
	}
	return nil
}

func leafOf(text []byte) (leaf *x509.Certificate, err error) {
	// A file that contains a private key is refused, because workers would get
	// the key.
	if bytes.Contains(text, []byte("PRIVATE KEY-----")) {
		return nil, errors.New("contains a private key, but workers receive the whole file; keep the key in its own file")
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("a certificate cannot be parsed")
		}
		if leaf == nil {
			leaf = c
		}
	}
	if leaf == nil {
		return nil, errors.New("no certificate in PEM")
	}
	return leaf, nil
}

// warnValidity logs a warning if the certificate has expired or is not valid
// yet. The keeper still uses such a certificate: most clients will reject it,
// but some may ignore the problem.
func (p *pair) warnValidity() {
	now := time.Now()
	switch {
	case now.After(p.leaf.NotAfter):
		slog.Warn("certificate expired", "not_after", p.leaf.NotAfter)
	case now.Before(p.leaf.NotBefore):
		slog.Warn("certificate not valid yet", "not_before", p.leaf.NotBefore)
	}
}
