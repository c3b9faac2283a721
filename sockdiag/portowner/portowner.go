// Package portowner finds the owner of the socket that a connection on this machine leads
// to.
//
// Facts: rtnetlink(7).
package portowner

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"

	"schedrestd/sockdiag"
)

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
// this machine. The error is sockdiag.ErrUnknown when there is no such connection.
//
// A connection that no process has accepted yet belongs to the listening
// socket, and is reset when that one is closed. So the owner of the listening
// socket is looked up first: if the connection has still not been accepted
// after that, it is this owner's. In the other order a process could accept it,
// close its listening socket, leave the port to the daemon, and have the
// daemon's owner taken for its own.
func Server(local, remote netip.AddrPort) (uid uint32, err error) {
	listener, failed := Listener(remote)
	s, err := sockdiag.Find(remote, local)
	switch {
	case err != nil:
		return 0, err
	case s.Listening:
		return 0, sockdiag.ErrUnknown
	case s.Inode == 0: // not accepted yet, or closed, when no process can read from it
		return listener, failed
	}
	return s.UID, nil
}

// Listener returns the uid of the process that accepts connections to the
// address at. The error is sockdiag.ErrUnknown when no process does.
func Listener(at netip.AddrPort) (uid uint32, err error) {
	none := netip.IPv4Unspecified()
	if !at.Addr().Unmap().Is4() {
		none = netip.IPv6Unspecified()
	}
	s, err := sockdiag.Find(at, netip.AddrPortFrom(none, 0))
	if err == nil && !s.Listening {
		err = sockdiag.ErrUnknown
	}
	return s.UID, err
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
	r, err := sockdiag.Ask(unix.NETLINK_ROUTE, unix.RTM_GETROUTE, b)
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
