package keys

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"

	"schedrestd/auth"
	"schedrestd/ipc/work"
)

// Handshake performs the TLS handshake of c, whose client has this source, and
// reports whether it failed because the keeper did not sign, which is not the
// client's fault.
func Handshake(ctx context.Context, c *tls.Conn, source string) (unsigned bool, err error) {
	f := &facts{source: source}
	err = c.HandshakeContext(context.WithValue(ctx, factsKey{}, f))
	return f.unsigned, err
}

// facts holds what is known of a handshake and not in its error.
type facts struct {
	source   string // of the client
	unsigned bool   // whether the keeper did not sign
}

// factsKey is the context key for the facts of a handshake.
type factsKey struct{}

// IsGarbled reports whether err is due to the received bytes, and not to the
// connection. For such an error, crypto/tls sends an alert and returns a "local
// error".
func IsGarbled(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "local error"
}

// Offence returns the offence of a client whose handshake failed, if there is
// one. If the client's certificate was rejected, the offence has a credential. A
// connection that breaks or takes too long is not an offence, because health
// checks of load balancers cause such connections. An alert from the client is
// not an offence either, because it usually means that the client does not trust
// our certificate.
func Offence(err error) (offence work.Offence, found bool) {
	if IsGarbled(err) {
		return work.Offence{Kind: work.BadRequest}, true
	}
	if certErr, ok := errors.AsType[*tls.CertificateVerificationError](err); ok { // the client's certificate is not trusted or has expired
		o := work.Offence{Kind: work.BadCredential}
		if len(certErr.UnverifiedCertificates) > 0 {
			o.Credential = auth.CertificateHash(certErr.UnverifiedCertificates[0].Raw)
		}
		return o, true
	}
	if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return work.Offence{}, false
	}
	return work.Offence{Kind: work.BadRequest}, true
}
