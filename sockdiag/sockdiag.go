// Package sockdiag asks the kernel for the owners of TCP sockets on this
// machine, as ss(8) does. A credential must reach only the daemon it is meant
// for, and a port on this machine belongs to whichever user bound it first.
//
// The functions answer for the network namespace of the calling thread. They
// need no privilege, but AF_NETLINK and the kernel's tcp_diag. Facts:
// sock_diag(7), rtnetlink(7).
package sockdiag

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
)

// ErrUnknown is the result of a query about a socket that the kernel has no
// owner for: its process has closed it, or it is not on this machine.
var ErrUnknown = errors.New("the socket has no known owner")

// Local reports whether connections to ip stay on this machine, as the routing
// table has it: loopback, and every address of its interfaces.
func Local(ip netip.Addr) (bool, error) {
	if ip = ip.Unmap(); ip.IsLoopback() {
		return true, nil
	}
	kind, err := routeType(ip)
	return kind == unix.RTN_LOCAL, err
}

// Server returns the uid of the process that serves the other end of an
// established TCP connection between the addresses local and remote, both on
// this machine. The error is ErrUnknown when there is no such connection.
//
// A connection that no process has accepted yet belongs to the listening
// socket, and is reset when that one is closed. So the owner of the listening
// socket is looked up first: if the connection has still not been accepted
// after that, it is this owner's. In the other order a process could accept it,
// close its listening socket, leave the port to the daemon, and have the
// daemon's owner taken for its own.
func Server(local, remote netip.AddrPort) (uid uint32, err error) {
	listener, failed := Listener(remote)
	s, err := find(remote, local)
	switch {
	case err != nil:
		return 0, err
	case s.state == listening:
		return 0, ErrUnknown
	case s.inode == 0: // not accepted yet, or closed, when no process can read from it
		return listener, failed
	}
	return s.uid, nil
}

// Client returns the uid of the process that connected from the address remote
// to the address local, both on this machine. The error is ErrUnknown when it
// has closed its socket.
func Client(local, remote netip.AddrPort) (uid uint32, err error) {
	s, err := find(remote, local)
	if err == nil && (s.state == listening || s.inode == 0) {
		err = ErrUnknown
	}
	return s.uid, err
}

// Listener returns the uid of the process that accepts connections to the
// address at. The error is ErrUnknown when no process does.
func Listener(at netip.AddrPort) (uid uint32, err error) {
	none := netip.IPv4Unspecified()
	if !at.Addr().Unmap().Is4() {
		none = netip.IPv6Unspecified()
	}
	s, err := find(at, netip.AddrPortFrom(none, 0))
	if err == nil && s.state != listening {
		err = ErrUnknown
	}
	return s.uid, err
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
	return AddrPort(here), AddrPort(there), nil
}

// tcpSocket is the kernel's answer about one socket.
type tcpSocket struct {
	state uint8
	uid   uint32 // of who opened or accepted it; meaningless while inode is 0
	inode uint32 // 0: no process has it open
}

const listening = 10 // TCP_LISTEN

// Sizes and offsets in struct inet_diag_req_v2 and struct inet_diag_msg.
const (
	requestSize = 56
	replySize   = 72
	replyUID    = 64
	replyInode  = 68
)

// find returns the socket with the address own that is connected to other. When
// there is none, it returns the socket that listens on own.
func find(own, other netip.AddrPort) (tcpSocket, error) {
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
	r, err := ask(unix.NETLINK_SOCK_DIAG, unix.SOCK_DIAG_BY_FAMILY, b)
	switch {
	case errors.Is(err, unix.ENOENT):
		return tcpSocket{}, ErrUnknown
	case err != nil:
		return tcpSocket{}, err
	case len(r) < replySize:
		return tcpSocket{}, unix.EBADMSG
	}
	return tcpSocket{state: r[1], uid: binary.NativeEndian.Uint32(r[replyUID:]), inode: binary.NativeEndian.Uint32(r[replyInode:])}, nil
}

// routeType returns the type of the route to ip, an RTN_ number.
func routeType(ip netip.Addr) (kind uint8, err error) {
	b := make([]byte, unix.SizeofRtMsg, unix.SizeofRtMsg+unix.SizeofRtAttr+16)
	b[0], b[1] = unix.AF_INET6, uint8(ip.BitLen())
	if ip.Is4() {
		b[0] = unix.AF_INET
	}
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofRtAttr+len(ip.AsSlice())))
	b = binary.NativeEndian.AppendUint16(b, unix.RTA_DST)
	b = append(b, ip.AsSlice()...)
	r, err := ask(unix.NETLINK_ROUTE, unix.RTM_GETROUTE, b)
	switch {
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH):
		return unix.RTN_UNREACHABLE, nil
	case err != nil:
		return 0, err
	case len(r) < unix.SizeofRtMsg:
		return 0, unix.EBADMSG
	}
	return r[7], nil
}
