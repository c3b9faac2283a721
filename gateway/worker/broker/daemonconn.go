package broker

import (
	"context"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/fdpass"
	"schedrestd/internal/fdpass/unixconn"
	"schedrestd/ipc"
	"schedrestd/rpc/client"
)

func dialError(a client.Address, err error) error {
	return &net.OpError{Op: "dial", Net: a.Network, Addr: addrOf(a), Err: err}
}

// completeDial turns the descriptor fd from the dispatcher into a connection.
// The descriptor is either a TCP socket, which may still be connecting, or an
// O_PATH descriptor of a UNIX socket's file.
func completeDial(ctx context.Context, fd int, server uint32, a client.Address) (nc net.Conn, err error) {
	if a.Network == "unix" {
		defer unix.Close(fd)
		if fd, err = connectUnix(ctx, fd); err != nil {
			return nil, dialError(a, os.NewSyscallError("connect", err))
		}
	}
	c := newDaemonConn(fd, server, a)
	if a.Network == "unix" {
		return c, nil
	}
	if err := c.waitConnected(ctx); err != nil {
		c.Close()
		return nil, dialError(a, err)
	}
	return c, nil
}

// connectUnix connects to the UNIX socket to which the descriptor inode refers.
func connectUnix(ctx context.Context, inode int) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	fdpass.Refuse(fd)
	err = unixconn.Connect(ctx, fd, "/proc/self/fd/"+strconv.Itoa(inode))
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// A daemonConn is a connection to a daemon. Package net has no type for this,
// because it can't adopt a socket that is still connecting.
type daemonConn struct {
	*os.File
	addr   client.Address
	server uint32 // see Server
}

func newDaemonConn(fd int, server uint32, a client.Address) *daemonConn {
	return &daemonConn{File: os.NewFile(uintptr(fd), a.Address), addr: a, server: server}
}

// Server implements peer.BrokeredConn. It returns the uid of the server
// process, as the dispatcher reported it. known is false if the daemon is on
// another machine, or if this process can ask the kernel for the uid.
func (c *daemonConn) Server() (uid uint32, known bool) { return c.server, c.server != ipc.NoID }

// waitConnected waits until the socket is connected. If connecting fails, it
// returns the error.
func (c *daemonConn) waitConnected(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok {
		_ = c.SetWriteDeadline(deadline)
	}
	defer c.SetWriteDeadline(time.Time{})
	defer context.AfterFunc(ctx, func() { _ = c.SetWriteDeadline(time.Unix(1, 0)) })()
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var connectErr error
	err = raw.Write(func(fd uintptr) bool {
		errno, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && errno != 0 {
			err = unix.Errno(errno)
		}
		if err == nil {
			_, err = syscall.Getpeername(int(fd)) // unix.Getpeername needs a system call that the sandbox forbids
		}
		if err == syscall.ENOTCONN {
			return false // still connecting
		}
		connectErr = os.NewSyscallError("connect", err)
		return true
	})
	if err == nil {
		err = connectErr
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// LocalAddr returns an empty address, because the local address is unknown.
func (c *daemonConn) LocalAddr() net.Addr { return daemonAddr{network: c.addr.Network} }

// RemoteAddr returns the address of the daemon.
func (c *daemonConn) RemoteAddr() net.Addr { return addrOf(c.addr) }

// daemonAddr is the address of a daemon as a net.Addr.
type daemonAddr struct{ network, address string }

func addrOf(a client.Address) daemonAddr { return daemonAddr{a.Network, a.Address} }

// Network returns "tcp" or "unix".
func (p daemonAddr) Network() string { return p.network }

// String returns the address or the path.
func (p daemonAddr) String() string { return p.address }
