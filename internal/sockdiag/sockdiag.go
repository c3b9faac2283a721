// Package sockdiag asks the kernel for the owners of TCP sockets on this
// machine, as ss(8) does. Any user can bind a free port. So before the gateway
// sends credentials to a port on this machine, it checks which user owns the
// port.
//
// A function looks in the network namespace of the calling thread or, if its
// first argument is a netlink socket, in the namespace of that socket. Look-ups
// need AF_NETLINK and the kernel's tcp_diag, but no privilege. Source:
// sock_diag(7). Package portowner uses this package to find the server of a
// connection.
package sockdiag

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/internal/sockaddr"
)

// ErrUnknown is the error for a socket whose owner is unknown: its process has
// closed it, or the socket is on another machine.
var ErrUnknown = errors.New("the socket has no known owner")

// ClientUID returns the uid of the process that opened a TCP connection on this
// machine. The argument local is the server's address, and remote is the
// client's address. If the process has closed its socket, ClientUID returns
// ErrUnknown.
func ClientUID(local, remote netip.AddrPort) (uid uint32, err error) {
	socket, err := Open(unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, err
	}
	defer unix.Close(socket)
	return clientUID(socket, local, remote)
}

// clientUID works like ClientUID, but sends the request through a socket that
// Open returned. The socket can belong to another network namespace. Only one
// goroutine at a time may use it.
func clientUID(socket int, local, remote netip.AddrPort) (uid uint32, err error) {
	s, err := FindSocket(socket, remote, local)
	if err == nil && (s.Listening || s.Inode == 0) {
		err = ErrUnknown
	}
	return s.UID, err
}

// Addrs returns the local and the remote address of the TCP socket fd. If the
// socket is not connected yet, Addrs returns unix.ENOTCONN.
func Addrs(fd int) (local, remote netip.AddrPort, err error) {
	localSA, err := syscall.Getsockname(fd)
	if err != nil {
		return local, remote, err
	}
	remoteSA, err := syscall.Getpeername(fd)
	if err != nil {
		return local, remote, err
	}
	return sockaddr.AddrPort(localSA), sockaddr.AddrPort(remoteSA), nil
}

// TCPSocket describes a socket as the kernel reported it.
type TCPSocket struct {
	Listening bool
	PeerEnded bool   // its peer has closed its own socket, or has stopped sending
	UID       uint32 // user who opened or accepted it; meaningless if Inode is 0
	Inode     uint32 // 0 if no process has it open
}

// States of a socket (include/net/tcp_states.h).
const (
	stateCloseWait = 8  // TCP_CLOSE_WAIT
	stateListen    = 10 // TCP_LISTEN
)

// Sizes and offsets in struct inet_diag_req_v2 and struct inet_diag_msg.
const (
	requestSize = 56
	replySize   = 72
	replyUID    = 64
	replyInode  = 68
)

// FindSocket returns the TCP socket with the given addresses. The argument
// local is the address of the socket itself, and remote is the address of its
// peer. If there is no such socket, FindSocket returns the socket that listens
// on the address local. It sends the request through a socket that Open returned.
// Only one goroutine at a time may use that socket.
func FindSocket(socket int, local, remote netip.AddrPort) (TCPSocket, error) {
	b := make([]byte, requestSize)
	ip := local.Addr().Unmap()
	b[0], b[1] = unix.AF_INET6, unix.IPPROTO_TCP
	if ip.Is4() {
		b[0] = unix.AF_INET
	}
	binary.NativeEndian.PutUint32(b[4:], ^uint32(0)) // sockets in every state
	binary.BigEndian.PutUint16(b[8:], local.Port())
	binary.BigEndian.PutUint16(b[10:], remote.Port())
	copy(b[12:28], ip.AsSlice())
	copy(b[28:44], remote.Addr().Unmap().AsSlice())
	binary.NativeEndian.PutUint64(b[48:], ^uint64(0)) // any cookie
	r, err := queryVia(socket, unix.SOCK_DIAG_BY_FAMILY, b)
	switch {
	case errors.Is(err, unix.ENOENT):
		return TCPSocket{}, ErrUnknown
	case err != nil:
		return TCPSocket{}, err
	case len(r) < replySize:
		return TCPSocket{}, unix.EBADMSG
	}
	return TCPSocket{Listening: r[1] == stateListen, PeerEnded: r[1] == stateCloseWait, UID: binary.NativeEndian.Uint32(r[replyUID:]), Inode: binary.NativeEndian.Uint32(r[replyInode:])}, nil
}
