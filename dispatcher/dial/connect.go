package dial

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/ipc"
	"schedrestd/sockaddr"
	"schedrestd/sockdiag"
	"schedrestd/sockdiag/portowner"
)

// conn is a descriptor for a worker: a TCP socket that is connected or still
// connecting, or the inode of a UNIX socket.
type conn struct {
	fd     int
	owner  uint32 // owner of the UNIX socket's directory; ipc.NoID with TCP
	server uint32 // uid of the process at the other end if it is on this machine, or owner of the UNIX socket; otherwise ipc.NoID
}

func (c conn) close() { unix.Close(c.fd) }

// errnoOf returns the kernel's number of err.
func errnoOf(err error) unix.Errno {
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return errno
	}
	return unix.EADDRNOTAVAIL
}

// target is a TCP address to connect to.
type target struct {
	netip.AddrPort
	local bool // the address is on this machine, so the uid of the process that serves each connection is looked up
	diag  int  // netlink socket for the look-up; -1 if the address is on another machine
}

// parseTarget reads an IP and a port. The caller closes the target.
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

// connect returns a TCP socket that is connecting to a target, in the network
// namespace of the calling thread. If deferred is true, the socket only stores
// the address, and connects with its first write. A socket to this machine
// can't be deferred, because the uid of its server could not be checked.
func connect(to target, ports uint32, deferred bool) (conn, error) {
	family, sa := sockaddr.Sockaddr(to.AddrPort)
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return conn{}, err
	}
	// Delaying small segments would gain nothing: a request is one segment, and
	// its answer begins when the whole request has arrived.
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
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
	// EINPROGRESS on a deferred connection means that the kernel has not
	// deferred it.
	if err != nil && (err != unix.EINPROGRESS || deferred) {
		unix.Close(fd)
		return conn{}, err
	}
	c := conn{fd, ipc.NoID, ipc.NoID}
	if to.local {
		if c.server, err = to.server(fd); err != nil {
			c.close()
			return conn{}, err
		}
	}
	return c, nil
}

// server returns the uid of the process on this machine that serves the other
// end of fd. It returns become.Overflow if the kernel does not know the uid.
func (t target) server(fd int) (uint32, error) {
	local, remote, err := sockdiag.Addrs(fd)
	if err == unix.ENOTCONN { // the server's queue of connections is full
		return 0, unix.EAGAIN
	}
	if err != nil {
		return 0, err
	}
	uid, err := portowner.ServerUIDVia(t.diag, local, remote)
	if errors.Is(err, sockdiag.ErrUnknown) {
		return become.Overflow, nil
	}
	return uid, err
}

// deferConnect makes connect(2) on fd only store the address. It uses TCP fast
// open without a cookie, so that a first write of no bytes starts a normal
// handshake.
func deferConnect(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1); err != nil {
		return err
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_NO_COOKIE, 1)
}

// openInode opens the UNIX socket at path without connecting. The path is
// looked up again for each connection, because a daemon may have made a new
// socket in a restart.
//
// The server is the owner of the socket: the uid of the process that called
// bind(2), unless root has changed the owner. A link to another user's socket
// leads to that user's process, so the owner of the socket is still right.
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

// ipLocalPortRange is IP_LOCAL_PORT_RANGE of ip(7).
const ipLocalPortRange = 51

// PortShares is the number of parts into which this machine's ports are divided
// for workers. The side that closes a connection first keeps its port occupied
// for a minute. One worker must not be able to occupy all ports in this way.
//
// An honest worker occupies ports, too: a port that is occupied by a connection
// to a controller on another machine can't be used again for the same
// controller. With more than two parts each part would be smaller, and an
// honest worker would run out of ports sooner.
const PortShares = 2

// Ports returns the local ports for the connections of a worker, in the form of
// IP_LOCAL_PORT_RANGE. 0 means all ports.
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
