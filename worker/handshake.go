package worker

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"schedrestd/ipc"
)

// shake makes the handshake of an https:// connection that has HTTP/1 or HTTP/2 on it, and puts it
// where http.Server accepts it. A client that speaks plain HTTP is told so.
func (s *server) shake(raw *conn, secured *tls.Conn, limit time.Duration) {
	_ = raw.SetReadDeadline(time.Now().Add(limit))
	ours := new(shaken)
	err := secured.HandshakeContext(context.WithValue(s.shaking, shakenKey{}, ours))
	_ = raw.SetReadDeadline(time.Time{})
	plain, ok := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case err == nil && secured.ConnectionState().NegotiatedProtocol == "h2":
		s.queue2.put(newHTTP2Conn(secured, s.offences))
	case err == nil:
		s.queue.put(s.own.wrap(secured, raw.peer))
	case ok && plain.Conn != nil && beginsLikeHTTP(plain.RecordHeader[:]):
		c := s.own.wrap(raw, raw.peer)
		c.mu.Lock()
		_ = c.refuse(isPlain)
		c.mu.Unlock()
		_ = raw.Close()
	case s.shaking.Err() != nil:
		_ = raw.Close()
	default:
		s.counts.handshakes.Add(1)
		slog.Info("TLS handshake failed", "peer", raw.peer.String(), "error", err)
		if !ours.unsigned {
			s.offences.handshake(raw.id, err)
		}
		_ = raw.Close()
	}
}

// shaken is what is known of a handshake beside its error.
type shaken struct{ unsigned bool } // the keeper did not sign it: no fault of the client's

// shakenKey is where a handshake's context has it.
type shakenKey struct{}

// beginsLikeHTTP reports whether the bytes in place of a TLS record header are a
// method in capital letters.
func beginsLikeHTTP(b []byte) bool {
	for _, c := range b[:3] {
		if c < 'A' || c > 'Z' {
			return false
		}
	}
	return true
}

// isGarbled tells whether err is about what came within TLS, and is none of its own: only then crypto/tls sends an
// alert, and calls that a local error. What breaks a connection is another one.
func isGarbled(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "local error"
}

// blames tells what a client did whose handshake failed with err, if it did anything. It did not when the connection broke or
// took too long, as that of a load balancer does that looks whether somebody is there; or when it is
// the client who turned away: he sent an alert, most often because he does not know who signed our certificate.
func blames(err error) (what ipc.Wrong, wrong bool) {
	if isGarbled(err) {
		return ipc.WrongRequest, true
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok { // his certificate is expired, or of nobody's
		return ipc.WrongCredential, true
	}
	if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, false
	}
	return ipc.WrongRequest, true
}
