package clientconn

import (
	"cmp"
	"errors"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
)

// A tcpConn is a TCP connection. Package net would duplicate its descriptor, ask
// the kernel for its type and addresses, and set options that it has inherited
// from the listening socket: fifteen system calls, which is half of all that this
// process makes for a connection with one short request.
type tcpConn struct {
	*os.File
	local, remote addr
}

// newTCP returns a tcpConn for the descriptor fd. It makes sure that fd does not
// block, because an attacker may have controlled a worker that had fd before.
func newTCP(fd int, m *ipc.Connection) (tcpConn, error) {
	err := unix.SetNonblock(fd, true)
	network := m.Network.String()
	return tcpConn{os.NewFile(uintptr(fd), "connection"), addr{network, m.Listener}, addr{network, m.Addr}}, err
}

// Read reads from the connection. Its errors are those of package net, which
// crypto/tls and net/http know.
func (c tcpConn) Read(p []byte) (int, error) {
	n, err := c.File.Read(p)
	return n, netError(err)
}

// Write writes to the connection. Its errors are like those of Read.
func (c tcpConn) Write(p []byte) (int, error) {
	n, err := c.File.Write(p)
	return n, netError(err)
}

func netError(err error) error {
	e, ok := errors.AsType[*os.PathError](err)
	switch {
	case !ok:
		return err
	case e.Err == os.ErrClosed:
		e.Err = net.ErrClosed
	}
	return &net.OpError{Op: e.Op, Net: ipc.TCP.String(), Err: e.Err}
}

// SetWriteDeadline sets the deadline for writes. It fails only if c is closed. Package
// os then returns an error of its own, for which a client could get a penalty.
func (c tcpConn) SetWriteDeadline(t time.Time) error {
	if c.File.SetWriteDeadline(t) != nil {
		return &net.OpError{Op: "write", Net: ipc.TCP.String(), Err: net.ErrClosed}
	}
	return nil
}

// LocalAddr returns the address of the listener.
func (c tcpConn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the client.
func (c tcpConn) RemoteAddr() net.Addr { return c.remote }

// CloseWrite shuts down the sending side.
func (c tcpConn) CloseWrite() error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	closed := raw.Control(func(fd uintptr) { err = unix.Shutdown(int(fd), unix.SHUT_WR) })
	return cmp.Or(closed, err)
}
