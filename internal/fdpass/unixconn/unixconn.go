// Package unixconn reads from UNIX connections and closes them, without being
// blocked by descriptors that a peer sends (see package fdpass). It is for
// processes that serve clients. The parent does not use it, because it passes
// its connections on without reading from them.
package unixconn

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/internal/fdpass"
)

// Conn is a UNIX connection. Its peer can't block threads that read from it or
// close it.
type Conn struct {
	*net.UnixConn
	raw        syscall.RawConn
	rejectsFDs bool // the peer can't have sent a descriptor over the connection
}

// Wrap wraps c in a Conn. If c was accepted from a socket that rejects
// descriptors, c has rejected them from the beginning and needs no protection.
func Wrap(c *net.UnixConn) (*Conn, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	g := &Conn{UnixConn: c, raw: raw}
	err = raw.Control(func(fd uintptr) { g.rejectsFDs = fdpass.Refuses(int(fd)) })
	return g, err
}

// RefusesFDs reports whether the peer can't have sent a descriptor. Close then
// returns at once.
func (c *Conn) RefusesFDs() bool { return c.rejectsFDs }

// Read implements io.Reader. It closes descriptors that arrive with the bytes.
func (c *Conn) Read(p []byte) (int, error) {
	if c.rejectsFDs || len(p) == 0 {
		return c.UnixConn.Read(p)
	}
	return c.read(p)
}

func (c *Conn) read(p []byte) (n int, err error) {
	var readErr error
	err = c.raw.Read(func(fd uintptr) bool {
		fdpass.Do(func() {
			for n, readErr = unix.Read(int(fd), p); readErr == unix.EINTR; n, readErr = unix.Read(int(fd), p) {
			}
		})
		return readErr != unix.EAGAIN
	})
	switch op, _ := errors.AsType[*net.OpError](err); {
	case op != nil:
		op.Op = "read" // package net uses a different word for a RawConn
		return 0, err
	case err != nil:
		return 0, err
	case readErr != nil:
		return 0, &net.OpError{Op: "read", Net: "unix", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError("read", readErr)}
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (c *Conn) Close() error {
	if c.rejectsFDs {
		return c.UnixConn.Close()
	}
	return fdpass.Release(c.UnixConn)
}
