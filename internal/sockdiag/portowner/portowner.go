// Package portowner finds the user who owns the other end of a TCP connection
// on this machine.
//
// Source: rtnetlink(7).
package portowner

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"

	"schedrestd/internal/sockdiag"
)

// IsLocal reports whether connections to ip stay on this machine, according to
// the routing table. This is true of loopback addresses and of every address of
// the machine's interfaces.
func IsLocal(ip netip.Addr) (bool, error) {
	if ip = ip.Unmap(); ip.IsLoopback() {
		return true, nil
	}
	kind, err := routeType(ip)
	return kind == unix.RTN_LOCAL, err
}

// ServerUID returns the uid of the process that serves an established TCP
// connection on this machine. The argument local is the client's address, and
// remote is the server's address. If there is no such connection, ServerUID
// returns sockdiag.ErrUnknown.
//
// A connection that no process has accepted yet belongs to the listening
// socket, and is reset when that socket is closed. For such a connection,
// ServerUID returns the owner of the listening socket. ServerUID looks up that
// owner first, and then the connection. If it looked up the connection first,
// an attacker's process could accept the connection between the two look-ups,
// close its listening socket, and leave the port to a daemon. ServerUID would
// then mistake the daemon's user for the owner of the connection.
func ServerUID(local, remote netip.AddrPort) (uid uint32, err error) {
	socket, err := sockdiag.Open(unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, err
	}
	defer unix.Close(socket)
	return ServerUIDVia(socket, local, remote)
}

// ServerUIDVia works like ServerUID, but sends its requests through a socket
// that sockdiag.Open returned. Only one goroutine at a time may use that
// socket.
func ServerUIDVia(socket int, local, remote netip.AddrPort) (uid uint32, err error) {
	listener, listenerErr := listenerUIDVia(socket, remote)
	s, err := sockdiag.FindSocket(socket, remote, local)
	switch {
	case err != nil:
		return 0, err
	case s.Listening:
		return 0, sockdiag.ErrUnknown
	case s.Inode == 0: // not accepted yet, or already closed: no process can read from the connection
		return listener, listenerErr
	}
	return s.UID, nil
}

// ListenerUID returns the uid of the process that accepts connections to an
// address. If there is no such process, it returns sockdiag.ErrUnknown.
func ListenerUID(at netip.AddrPort) (uid uint32, err error) {
	socket, err := sockdiag.Open(unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, err
	}
	defer unix.Close(socket)
	return listenerUIDVia(socket, at)
}

// listenerUIDVia works like ListenerUID, but sends its requests through the
// given socket.
func listenerUIDVia(socket int, at netip.AddrPort) (uid uint32, err error) {
	unspecified := netip.IPv4Unspecified()
	if !at.Addr().Unmap().Is4() {
		unspecified = netip.IPv6Unspecified()
	}
	s, err := sockdiag.FindSocket(socket, at, netip.AddrPortFrom(unspecified, 0))
	if err == nil && !s.Listening {
		err = sockdiag.ErrUnknown
	}
	return s.UID, err
}

// routeType returns the type of the route to ip, an RTN_ constant.
func routeType(ip netip.Addr) (kind uint8, err error) {
	b := make([]byte, unix.SizeofRtMsg, unix.SizeofRtMsg+unix.SizeofRtAttr+16)
	b[0], b[1] = unix.AF_INET6, uint8(ip.BitLen())
	if ip.Is4() {
		b[0] = unix.AF_INET
	}
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofRtAttr+len(ip.AsSlice())))
	b = binary.NativeEndian.AppendUint16(b, unix.RTA_DST)
	b = append(b, ip.AsSlice()...)
	r, err := sockdiag.Query(unix.NETLINK_ROUTE, unix.RTM_GETROUTE, b)
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
