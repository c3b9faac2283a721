package tlsconn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
)

// A Server serves TLS on the connections of a daemon. It asks for no
// certificates of clients.
type Server struct{ config *tls.Config }

// NewServer returns a Server with a certificate chain and its private key, both
// in PEM. Errors do not quote the key.
func NewServer(certificate, key []byte) (*Server, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "certificate and key for TLS")
	}
	return &Server{&tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, GetConfigForClient: checkPresence}}, nil
}

// checkPresence refuses the handshake with a client that has closed its
// connection. It is called before the signature, which takes most of the time of
// a handshake: anyone can send a recorded beginning of one and leave.
func checkPresence(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if l, ok := hello.Conn.(*lower); ok && hasGone(l.Conn) {
		return nil, ErrCutOff
	}
	return nil, nil
}

// hasGone reports whether the peer will send nothing more, apart from what has
// arrived already.
func hasGone(nc net.Conn) (gone bool) {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(fds, 0)
		gone = err == nil && n > 0
	})
	return gone || err != nil
}

// Wrap returns a connection that speaks TLS on nc. The handshake takes place
// with the first Read, within the deadlines that the caller has set.
func (s *Server) Wrap(nc net.Conn) net.Conn {
	l := &lower{Conn: nc}
	return &served{Conn{tls.Server(l, s.config), l}}
}

// served is a connection of a Server.
type served struct{ Conn }

// alert is what a client without TLS gets: a record of TLS with a fatal alert,
// "unexpected message". A gateway without TLS recognises it.
var alert = []byte{0x15, 3, 3, 0, 2, 2, 10}

// Read reads from the client.
func (c *served) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if record, ok := errors.AsType[tls.RecordHeaderError](err); ok && record.Conn != nil {
		_, _ = c.lower.Write(alert)
		err = fmt.Errorf("the client does not speak TLS (%s): %w", sameType, err)
	}
	return n, err
}
