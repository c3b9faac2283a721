// Package sockdiag asks the kernel for the owners of TCP sockets on this
// machine, as ss(8) does. A credential must reach only the daemon it is meant
// for, and a port on this machine belongs to whichever user bound it first.
//
// The functions answer for the network namespace of the calling thread. They
// need no privilege, but AF_NETLINK and the kernel's tcp_diag. Facts:
// sock_diag(7). Package portowner asks on behalf of those who connect.
package sockdiag

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"

	"schedrestd/sockaddr"
)

// ErrUnknown is the result of a query about a socket that the kernel has no
// owner for: its process has closed it, or it is not on this machine.
var ErrUnknown = errors.New("the socket has no known owner")

// Client returns the uid of the process that connected from the address remote
// to the address local, both on this machine. The error is ErrUnknown when it
// has closed its socket.
func Client(local, remote netip.AddrPort) (uid uint32, err error) {
	socket, err := Open(unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, err
	}
	defer unix.Close(socket)
	return ClientBy(socket, local, remote)
}

// ClientBy returns what Client does. It asks through socket, which Open returned and which can
// be of another network namespace. Only one goroutine at a time may use it.
func ClientBy(socket int, local, remote netip.AddrPort) (uid uint32, err error) {
	s, err := find(socket, remote, local)
	if err == nil && (s.Listening || s.Inode == 0) {
		err = ErrUnknown
	}
	return s.UID, err
}

// Ends returns the two addresses of the connected TCP socket fd. The error is
// unix.ENOTCONN while it is being connected.
func Ends(fd int) (local, remote netip.AddrPort, err error) {
	here, err := unix.Getsockname(fd)
	if err != nil {
		return local, remote, err
	}
	there, err := unix.Getpeername(fd)
	if err != nil {
		return local, remote, err
	}
	return sockaddr.AddrPort(here), sockaddr.AddrPort(there), nil
}

// TCPSocket is the kernel's answer about one socket.
type TCPSocket struct {
	Listening bool
	UID       uint32 // of who opened or accepted it; meaningless while Inode is 0
	Inode     uint32 // 0: no process has it open
}

const stateListen = 10 // TCP_LISTEN

// Sizes and offsets in struct inet_diag_req_v2 and struct inet_diag_msg.
const (
	requestSize = 56
	replySize   = 72
	replyUID    = 64
	replyInode  = 68
)

// Find returns the socket with the address own that is connected to other. When
// there is none, it returns the socket that listens on own.
func Find(own, other netip.AddrPort) (TCPSocket, error) {
	socket, err := Open(unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return TCPSocket{}, err
	}
	defer unix.Close(socket)
	return find(socket, own, other)
}

func find(socket int, own, other netip.AddrPort) (TCPSocket, error) {
	b := make([]byte, requestSize)
	ip := own.Addr().Unmap()
	b[0], b[1] = unix.AF_INET6, unix.IPPROTO_TCP
	if ip.Is4() {
		b[0] = unix.AF_INET
	}
	binary.NativeEndian.PutUint32(b[4:], ^uint32(0)) // sockets in every state
	binary.BigEndian.PutUint16(b[8:], own.Port())
	binary.BigEndian.PutUint16(b[10:], other.Port())
	copy(b[12:28], ip.AsSlice())
	copy(b[28:44], other.Addr().Unmap().AsSlice())
	binary.NativeEndian.PutUint64(b[48:], ^uint64(0)) // whatever its cookie
	r, err := askBy(socket, unix.SOCK_DIAG_BY_FAMILY, b)
	switch {
	case errors.Is(err, unix.ENOENT):
		return TCPSocket{}, ErrUnknown
	case err != nil:
		return TCPSocket{}, err
	case len(r) < replySize:
		return TCPSocket{}, unix.EBADMSG
	}
	return TCPSocket{Listening: r[1] == stateListen, UID: binary.NativeEndian.Uint32(r[replyUID:]), Inode: binary.NativeEndian.Uint32(r[replyInode:])}, nil
}
