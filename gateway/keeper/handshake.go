package keeper

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"slices"
)

// serverContext is the beginning of the message that a server signs in a TLS
// 1.3 handshake: 64 spaces, a context that names the signer and the purpose,
// and a zero byte. The hash of the transcript follows (RFC 8446, 4.4.3).
//
// In TLS 1.2, the message consists of client_random, server_random and the
// server's part of the key exchange (RFC 8422, 5.4). The two random values can
// be any bytes, so such a message is signed only if TLS 1.2 is enabled.
var serverContext = append(bytes.Repeat([]byte{' '}, 64), "TLS 1.3, server CertificateVerify\x00"...)

// transcriptSizes lists the possible lengths of a transcript's hash, in bytes.
// The cipher suite uses either SHA-256 or SHA-384.
var transcriptSizes = []int{32, 48}

var (
	errNotHandshake = errors.New("not a message that a TLS server signs")
	errScheme       = errors.New("the signature scheme does not match the key or the TLS version")
)

// checkMessage checks that a TLS server could sign a message of this form in a
// handshake, with this key and scheme. A signature of any other message could
// be misused as the gateway's signature.
func (p *pair) checkMessage(message []byte, s scheme) error {
	var allowed []scheme
	switch {
	case isTLS13(message):
		allowed = p.schemes13()
	case p.tls12 && isTLS12(message):
		allowed = p.schemes12()
	default:
		return errNotHandshake
	}
	if !slices.Contains(allowed, s) {
		return errScheme
	}
	return nil
}

func isTLS13(m []byte) bool {
	hash, ok := bytes.CutPrefix(m, serverContext)
	return ok && slices.Contains(transcriptSizes, len(hash))
}

// pointSizes maps each named group that crypto/tls uses in TLS 1.2 to the
// length of a public value, in bytes.
var pointSizes = map[uint16]int{
	23: 65,  // secp256r1, uncompressed
	24: 97,  // secp384r1
	25: 133, // secp521r1
	29: 32,  // x25519
}

// isTLS12 reports whether m consists of client_random, server_random and
// ServerECDHParams.
func isTLS12(m []byte) bool {
	const randoms, head = 64, 4 // head consists of curve_type, namedcurve and the length of the point
	if len(m) < randoms+head {
		return false
	}
	params := m[randoms:]
	curve, point := uint16(params[1])<<8|uint16(params[2]), params[head:]
	const namedCurve, uncompressed = 3, 4
	switch {
	case params[0] != namedCurve || pointSizes[curve] == 0:
		return false
	case len(point) != pointSizes[curve] || int(params[3]) != len(point):
		return false
	}
	return curve == 29 || point[0] == uncompressed
}

// schemes13 returns the TLS 1.3 signature schemes for this key. In TLS 1.3,
// each elliptic curve is combined with only one hash.
func (p *pair) schemes13() []scheme {
	switch key := p.signer.Public().(type) {
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256():
			return []scheme{ecdsaSHA256}
		case elliptic.P384():
			return []scheme{ecdsaSHA384}
		case elliptic.P521():
			return []scheme{ecdsaSHA512}
		}
	case *rsa.PublicKey:
		return []scheme{pssSHA256, pssSHA384, pssSHA512}
	case ed25519.PublicKey:
		return []scheme{pureEd25519}
	}
	return nil
}

// schemes12 returns the TLS 1.2 signature schemes for this key, except those
// with SHA-1.
func (p *pair) schemes12() []scheme {
	switch p.signer.Public().(type) {
	case *ecdsa.PublicKey:
		return []scheme{ecdsaSHA256, ecdsaSHA384, ecdsaSHA512}
	case *rsa.PublicKey:
		return []scheme{pssSHA256, pssSHA384, pssSHA512, pkcs1SHA256, pkcs1SHA384, pkcs1SHA512}
	case ed25519.PublicKey:
		return []scheme{pureEd25519}
	}
	return nil
}
