package worker

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"time"

	"schedrestd/gateway/worker/clientconn"
	"schedrestd/gateway/worker/conns"
	"schedrestd/gateway/worker/http1server"
	"schedrestd/gateway/worker/keys"
)

// handshake performs the TLS handshake of a connection, and serves the
// connection with HTTP/1 or HTTP/2. If the client sends plain HTTP, it gets an
// error.
func (s *server) handshake(raw *clientconn.Conn, c *conns.Conn, tlsConn *tls.Conn) {
	_ = raw.SetReadDeadline(time.Now().Add(s.handshakeLimit))
	unsigned, err := keys.Handshake(context.Background(), tlsConn, raw.Peer.Source())
	_ = raw.SetReadDeadline(time.Time{})
	plain, ok := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case err == nil && tlsConn.ConnectionState().NegotiatedProtocol == "h2":
		s.serveHTTP2(tlsConn, raw, c)
	case err == nil:
		s.newHTTP1Conn(tlsConn, raw, c).Serve()
	case ok && plain.Conn != nil && beginsLikeHTTP(plain.RecordHeader[:]):
		s.newHTTP1Conn(raw, raw, c).Refuse(http1server.ErrPlainHTTP)
	default:
		s.counts.Handshakes.Add(1)
		if s.table.MayLog() {
			slog.Info("TLS handshake failed", "peer", raw.Peer.String(), "error", err)
		}
		if !unsigned {
			s.reportHandshake(c, err)
		}
		_ = raw.Close()
	}
}

// reportHandshake reports the offence of a client whose handshake failed with
// err. A certificate that was rejected before is not an offence.
func (s *server) reportHandshake(c *conns.Conn, err error) {
	offence, found := keys.Offence(err)
	if found && (offence.Credential == 0 || s.table.Reject(offence.Credential)) {
		c.Report(offence.Kind, offence.Credential)
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
