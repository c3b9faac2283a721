package keeper

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha256" // the hashes of the schemes
	_ "crypto/sha512"
	"fmt"
)

// scheme is the number of a signature scheme in TLS (RFC 8446, 4.2.3).
type scheme uint16

// The supported schemes, none with SHA-1.
const (
	pkcs1SHA256 scheme = 0x0401
	pkcs1SHA384 scheme = 0x0501
	pkcs1SHA512 scheme = 0x0601
	ecdsaSHA256 scheme = 0x0403
	ecdsaSHA384 scheme = 0x0503
	ecdsaSHA512 scheme = 0x0603
	pssSHA256   scheme = 0x0804
	pssSHA384   scheme = 0x0805
	pssSHA512   scheme = 0x0806
	pureEd25519 scheme = 0x0807
)

// options maps each scheme to the options that a signer needs for it. The salt
// of PSS is as long as the hash.
var options = map[scheme]crypto.SignerOpts{
	pkcs1SHA256: crypto.SHA256, pkcs1SHA384: crypto.SHA384, pkcs1SHA512: crypto.SHA512,
	ecdsaSHA256: crypto.SHA256, ecdsaSHA384: crypto.SHA384, ecdsaSHA512: crypto.SHA512,
	pssSHA256:   &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256},
	pssSHA384:   &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA384},
	pssSHA512:   &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA512},
	pureEd25519: crypto.Hash(0), // Ed25519 hashes the message itself
}

// String returns the number as the IANA registry shows it.
func (s scheme) String() string { return fmt.Sprintf("0x%04x", uint16(s)) }

// sign signs a message that checkMessage has accepted.
func (p *pair) sign(message []byte, s scheme) ([]byte, error) {
	o, ok := options[s]
	if !ok {
		return nil, errScheme
	}
	return crypto.SignMessage(p.signer, rand.Reader, message, o)
}
