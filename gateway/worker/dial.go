package worker

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/fdpass"
	"schedrestd/internal/fdpass/unixconn"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/rpc/client"
	"schedrestd/security"
)

// A dialer dials the daemons of one list in the worker's Setup. The first
// daemon of the list may also have a UNIX socket.
type dialer struct {
	*Broker
	upstream work.Upstream
	list     []work.Address
	socket   string // alternative path to the first daemon; "" for none
}

// dialer returns a function that dials the daemons of a list. If b is nil, or
// this process has no sandbox, dialer returns nil: the process can dial by
// itself.
func (b *Broker) dialer(upstream work.Upstream, list []work.Address, socket string) func(context.Context, client.Address) (net.Conn, error) {
	if b == nil || !security.Sandboxed {
		return nil
	}
	return dialer{b, upstream, list, socket}.dial
}

// dial connects to the address a, which must be in the list.
func (d dialer) dial(ctx context.Context, a client.Address) (net.Conn, error) {
	if a.Network == "unix" && a.Address == d.socket {
		nc, _, err := d.open(ctx, work.UpstreamSocket, 0, a)
		return nc, err
	}
	i := slices.IndexFunc(d.list, func(b work.Address) bool { return b.Network == a.Network && b.Address == a.Address })
	if i < 0 {
		return nil, fmt.Errorf("dial %s: not a configured daemon", a.Address)
	}
	nc, _, err := d.open(ctx, d.upstream, uint8(i), a)
	return nc, err
}

// redialDelay is how long the worker waits after the dispatcher has told it to
// try again.
const redialDelay = 50 * time.Millisecond

// open gets a descriptor from the dispatcher, and turns it into a connection to
// a daemon. For a UNIX socket, it also returns the owner of the socket's
// directory.
func (b *Broker) open(ctx context.Context, upstream work.Upstream, index uint8, a client.Address) (nc net.Conn, owner uint32, err error) {
	if a.Network == "tcp" {
		nc, err := b.pooledConn(ctx, work.DialBatch{Upstream: upstream, Index: index, Connected: a.Idle}, a)
		if nc != nil || err != nil {
			return nc, ipc.NoID, err
		}
	}
	for {
		r, err := b.roundTrip(ctx, func(id uint64) ipc.Message { return &work.Dial{ID: id, Upstream: upstream, Index: index} })
		if err != nil {
			return nil, 0, dialError(a, err)
		}
		switch m := r.Message.(type) {
		case *work.Dialed:
			nc, err := completeDial(ctx, r.FDs[0], m.Server, a)
			return nc, m.Owner, err
		case *work.DialFailed:
			if unix.Errno(m.Errno) != unix.EAGAIN {
				return nil, 0, dialError(a, os.NewSyscallError("connect", unix.Errno(m.Errno)))
			}
		}
		select {
		case <-ctx.Done():
			return nil, 0, dialError(a, ctx.Err())
		case <-time.After(redialDelay):
		}
	}
}

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
