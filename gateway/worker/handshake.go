package worker

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"time"

	"schedrestd/gateway/worker/clientconn"
	"schedrestd/gateway/worker/http1server"
	"schedrestd/gateway/worker/keys"
)

// handshake performs the TLS handshake of a connection, and serves the
// connection with HTTP/1, or queues it for HTTP/2. If the client sends plain
// HTTP, it gets an error.
func (s *server) handshake(raw *clientconn.Conn, tlsConn *tls.Conn, limit time.Duration) {
	_ = raw.SetReadDeadline(time.Now().Add(limit))
	unsigned, err := keys.Handshake(s.handshakeCtx, tlsConn)
	_ = raw.SetReadDeadline(time.Time{})
	plain, ok := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case err == nil && tlsConn.ConnectionState().NegotiatedProtocol == "h2":
		s.serveHTTP2(tlsConn, raw)
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
		if !unsigned {
			s.offences.reportHandshake(raw.ID, err)
		}
		_ = raw.Close()
	}
}

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
