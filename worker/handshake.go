package worker

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"time"
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
		s.queue2.put(newFrames(secured, s.offences))
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
