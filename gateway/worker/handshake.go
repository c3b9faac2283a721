package worker

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"schedrestd/gateway/worker/clientconn"
	"schedrestd/gateway/worker/http1server"
	"schedrestd/ipc/work"
)

// handshake performs the TLS handshake of a connection, and serves the
// connection with HTTP/1, or queues it for HTTP/2. If the client sends plain
// HTTP, it gets an error.
func (s *server) handshake(raw *clientconn.Conn, tlsConn *tls.Conn, limit time.Duration) {
	_ = raw.SetReadDeadline(time.Now().Add(limit))
	facts := new(handshakeFacts)
	err := tlsConn.HandshakeContext(context.WithValue(s.handshakeCtx, handshakeKey{}, facts))
	_ = raw.SetReadDeadline(time.Time{})
	plain, ok := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case err == nil && tlsConn.ConnectionState().NegotiatedProtocol == "h2":
		s.queue.put(newHTTP2Conn(tlsConn, s.offences))
	case err == nil:
		s.newHTTP1Conn(tlsConn, raw).Serve()
	case ok && plain.Conn != nil && beginsLikeHTTP(plain.RecordHeader[:]):
		s.newHTTP1Conn(raw, raw).Refuse(http1server.ErrPlainHTTP)
	case s.handshakeCtx.Err() != nil:
		_ = raw.Close()
	default:
		s.counts.Handshakes.Add(1)
		if s.offences.mayLog() {
			slog.Info("TLS handshake failed", "peer", raw.Peer.String(), "error", err)
		}
		if !facts.unsigned {
			s.offences.reportHandshake(raw.ID, err)
		}
		_ = raw.Close()
	}
}

// handshakeFacts holds facts about a handshake that the handshake's error does
// not contain.
type handshakeFacts struct{ unsigned bool } // the keeper did not sign, which is not the client's fault

// handshakeKey is the context key for a handshake's handshakeFacts.
type handshakeKey struct{}

// beginsLikeHTTP reports whether the client sent a method in capital letters
// where a TLS record header should be.
func beginsLikeHTTP(b []byte) bool {
	for _, c := range b[:3] {
		if c < 'A' || c > 'Z' {
			return false
		}
	}
	return true
}

// isGarbled reports whether err is due to the received bytes, and not to the
// connection. For such an error, crypto/tls sends an alert and returns a "local
// error".
func isGarbled(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "local error"
}

// handshakeOffence returns the offence of a client whose handshake failed, if
// there is one. A connection that breaks or takes too long is not an offence,
// because health checks of load balancers cause such connections. An alert from
// the client is not an offence either, because it usually means that the client
// does not trust our certificate.
func handshakeOffence(err error) (offence work.OffenceKind, found bool) {
	if isGarbled(err) {
		return work.BadRequest, true
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok { // the client's certificate is not trusted or has expired
		return work.BadCredential, true
	}
	if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, false
	}
	return work.BadRequest, true
}
