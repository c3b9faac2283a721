package worker

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"schedrestd/ipc/work"
)

// shake performs the handshake of an https:// connection and queues the
// connection for HTTP/1 or HTTP/2. A client that sends plain HTTP gets an error
// answer.
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

// shaken has facts about a handshake that the handshake's error does not
// contain.
type shaken struct{ unsigned bool } // the keeper did not sign, which is not the client's fault

// shakenKey is the context key of a handshake's shaken.
type shakenKey struct{}

// beginsLikeHTTP reports whether the client sent a method in capital letters in
// place of a TLS record header.
func beginsLikeHTTP(b []byte) bool {
	for _, c := range b[:3] {
		if c < 'A' || c > 'Z' {
			return false
		}
	}
	return true
}

// isGarbled reports whether the received bytes, not the connection, caused err.
// For such an error, crypto/tls sends an alert and returns a "local error".
func isGarbled(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "local error"
}

// blames returns the offence of the client in a failed handshake, if there is
// one. A connection that breaks or takes too long is not an offence, because
// health checks of load balancers cause such connections. An alert from the
// client is not an offence either: usually the client does not trust our
// certificate.
func blames(err error) (what work.Wrong, wrong bool) {
	if isGarbled(err) {
		return work.WrongRequest, true
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok { // the client's certificate has expired or is not trusted
		return work.WrongCredential, true
	}
	if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, false
	}
	return work.WrongRequest, true
}
