package dial

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/internal/sockaddr"
	"schedrestd/internal/sockdiag"
	"schedrestd/internal/sockdiag/portowner"
	"schedrestd/ipc"
)

// A conn is a descriptor with which a worker reaches a daemon. It is either a
// TCP socket, which may still be connecting, or the inode of a UNIX socket.
type conn struct {
	fd     int
	owner  uint32 // owner of the UNIX socket's directory; ipc.NoID for TCP
	server uint32 // TCP: uid of the server process, if it is on this machine; UNIX: owner of the socket; otherwise ipc.NoID
}

func (c conn) close() { unix.Close(c.fd) }

// errnoOf returns the kernel's error number for err.
func errnoOf(err error) unix.Errno {
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return errno
	}
	switch err {
	case errUnresolved:
		return unix.EHOSTUNREACH
	case errLookingUp:
		return unix.EAGAIN
	}
	return unix.EADDRNOTAVAIL
}

// target is a TCP address to connect to.
type target struct {
	netip.AddrPort
	local bool // the address is on this machine, so the uid of each connection's server is looked up
	diag  int  // netlink socket for the look-up; -1 if the address is on another machine
}

// parseTarget parses an IP address and a port. The caller must close the
// target.
func parseTarget(address string) (t target, err error) {
	t.diag = -1
	if t.AddrPort, err = netip.ParseAddrPort(address); err == nil {
		t.local, err = portowner.IsLocal(t.Addr())
	}
	if err == nil && t.local {
		t.diag, err = sockdiag.Open(unix.NETLINK_SOCK_DIAG)
	}
	return t, err
}

func (t target) close() {
	if t.diag >= 0 {
		unix.Close(t.diag)
	}
}

// connect creates a TCP socket in the network namespace of the calling thread,
// and begins to connect it to a target. If deferred is true, the socket only
// stores the address, and connects when it is first written to. For an address
// on this machine, deferred must be false, because the server's uid can be
// looked up only for a connected socket.
func connect(to target, ports uint32, deferred bool) (conn, error) {
	family, sa := sockaddr.Sockaddr(to.AddrPort)
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return conn{}, err
	}
	// Delaying small segments would gain nothing: a request is sent in one
	// segment, and the server answers only when it has the whole request.
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	// A call may wait for minutes for an answer. If the server's machine is gone,
	// the kernel finds this out sooner.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, int(keepaliveIdle.Seconds()))
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, int(keepaliveIdle.Seconds()))
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(maxUnacknowledged.Milliseconds()))
	if ports != 0 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, ipLocalPortRange, int(ports)) // has no effect before Linux 6.3
	}
	if deferred {
		err = deferConnect(fd)
	}
	for err == nil {
		if err = unix.Connect(fd, sa); err != unix.EINTR {
			break
		}
		err = nil
	}
	// EINPROGRESS for a deferred socket means that the kernel started to
	// connect at once.
	if err != nil && (err != unix.EINPROGRESS || deferred) {
		unix.Close(fd)
		return conn{}, err
	}
	c := conn{fd, ipc.NoID, ipc.NoID}
	if to.local {
		if c.server, err = to.server(fd); err == unix.ENOTCONN {
			err = notConnected(fd, sa)
		}
		if err != nil {
			c.close()
			return conn{}, err
		}
	}
	return c, nil
}

// Limits on the time for which a server's machine sends no packet.
const (
	keepaliveIdle     = 15 * time.Second // then it is asked for one, again and again
	maxUnacknowledged = 45 * time.Second // then the connection is closed
)

// notConnected returns the error with which fd has failed to connect to sa, such
// as ECONNREFUSED. It returns EAGAIN if fd is still connecting: then the
// server's queue of connections is full.
func notConnected(fd int, sa unix.Sockaddr) error {
	switch err := unix.Connect(fd, sa); err { // a second connect(2) returns the result of the first
	case nil, unix.EALREADY, unix.EINTR:
		return unix.EAGAIN
	default:
		return err
	}
}

// server returns the uid of the process on this machine to which fd is
// connected. It returns become.Overflow if the kernel does not know the uid.
func (t target) server(fd int) (uint32, error) {
	local, remote, err := sockdiag.Addrs(fd)
	if err != nil {
		return 0, err
	}
	uid, err := portowner.ServerUIDVia(t.diag, local, remote)
	if errors.Is(err, sockdiag.ErrUnknown) {
		return become.Overflow, nil
	}
	return uid, err
}

// deferConnect prepares fd so that connect(2) only stores the address. It
// enables TCP Fast Open without a cookie. A write of zero bytes then starts a
// normal handshake.
func deferConnect(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1); err != nil {
		return err
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_NO_COOKIE, 1)
}

// openInode opens the inode of the UNIX socket at path, without connecting. It
// looks up the path for each connection, because a daemon that restarts may
// create a new socket.
//
// In the result, server is the owner of the socket. This is the user that
// called bind(2), unless root has changed the owner. If the path is a link to
// another user's socket, server is that other user. This is correct, because
// the socket leads to that user's process.
func openInode(path string) (conn, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return conn{}, err
	}
	var st, dir unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		err = unix.ENOTSOCK
	}
	if err == nil {
		err = unix.Stat(filepath.Dir(path), &dir)
	}
	if err != nil {
		unix.Close(fd)
		return conn{}, err
	}
	return conn{fd, dir.Uid, st.Uid}, nil
}

// ipLocalPortRange is the socket option IP_LOCAL_PORT_RANGE (ip(7)).
const ipLocalPortRange = 51

// PortShares is the number of parts into which this machine's local ports are
// divided for workers. The side that closes a connection first keeps its own
// port occupied for a minute. A single worker must not be able to occupy all
// ports in this way.
//
// An honest worker also occupies ports: after a connection to a controller on
// another machine, the port can't be used for the same controller for a minute.
// With more parts, each part would be smaller, and an honest worker would run
// out of ports sooner.
const PortShares = 2

// Ports returns the local ports that a worker's connections may use, in the
// format of IP_LOCAL_PORT_RANGE. 0 means all ports.
func Ports(worker uint32) uint32 {
	var low, high uint32
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err == nil {
		_, err = fmt.Sscan(string(text), &low, &high)
	}
	size := (high + 1 - low) / PortShares
	if err != nil || high > math.MaxUint16 || size < 1000 || low > high {
		return 0
	}
	low += size * (worker % PortShares)
	return low | (low+size-1)<<16
}
