// Package tlsconn is the TLS between the site's daemons and their clients
// (TLSType=tls/s2n): the messages of Slurm's RPC are the same, but within a TLS
// stream. All programs of this project that speak or serve the RPC use it. UNIX
// sockets stay plain.
//
// A client accepts each certificate that the cluster's CA has signed. Like
// Slurm's programs, it does not compare names, because names in such
// certificates are free; unless the administrator has it do so.
//
// Package net's rule that the end of a connection is the end of the stream does
// not hold here: an attacker can end a connection. A stream ends with TLS's
// close_notify, and everything else is ErrCutOff.
package tlsconn

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrCutOff means that the connection ended within the TLS stream.
var ErrCutOff = errors.New("the connection ended without the end of the TLS stream (close_notify)")

// A Conn is a connection with TLS.
type Conn struct {
	*tls.Conn
	lower *lower
}

// HasNoInput reports whether c is open and nothing can be read from it. It reads
// the messages of TLS itself, such as session tickets. The caller must not use c
// concurrently.
func (c *Conn) HasNoInput() bool {
	c.lower.nonblocking.Store(true)
	defer c.lower.nonblocking.Store(false)
	n, err := c.Read(make([]byte, 1))
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}

// Close ends the stream, and closes the connection. It does not wait for the
// peer, even if the peer reads nothing.
func (c *Conn) Close() error {
	c.lower.closing.Store(true)
	return c.Conn.Close()
}

// lower is the connection below TLS.
type lower struct {
	net.Conn
	begun       bool        // the peer has sent something
	nonblocking atomic.Bool // Read does not wait
	closing     atomic.Bool // Write does not wait
}

// Read reads records. Package tls would take the end of the connection for that
// of the stream, and a timeout of os.File for the end of everything.
func (l *lower) Read(b []byte) (int, error) {
	if l.nonblocking.Load() {
		if err := l.hasInput(); err != nil {
			return 0, err
		}
	}
	n, err := l.Conn.Read(b)
	l.begun = l.begun || n > 0
	switch {
	case err == io.EOF && l.begun: // otherwise no stream has begun
		err = ErrCutOff
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = os.ErrDeadlineExceeded
	}
	return n, err
}

// hasInput returns nil if Read would not wait.
func (l *lower) hasInput() error {
	raw, err := l.raw()
	if err != nil {
		return err
	}
	var recvErr error
	err = raw.Read(func(fd uintptr) bool {
		_, _, recvErr = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return true
	})
	if err == nil && recvErr == unix.EAGAIN {
		err = os.ErrDeadlineExceeded
	}
	return err
}

// Write writes records. When c is being closed, the record is the end of the
// stream. It is dropped if the kernel has no room for it.
func (l *lower) Write(b []byte) (n int, err error) {
	if !l.closing.Load() {
		return l.Conn.Write(b)
	}
	raw, err := l.raw()
	if err != nil {
		return 0, err
	}
	var writeErr error
	err = raw.Write(func(fd uintptr) bool {
		n, writeErr = unix.Write(int(fd), b)
		return true
	})
	return max(n, 0), errors.Join(err, writeErr)
}

var errNoDescriptor = errors.New("the connection has no descriptor")

func (l *lower) raw() (syscall.RawConn, error) {
	if sc, ok := l.Conn.(syscall.Conn); ok {
		return sc.SyscallConn()
	}
	return nil, errNoDescriptor
}
