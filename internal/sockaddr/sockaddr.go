// Package sockaddr converts IP addresses between the types of package netip and
// those of system calls. Callers use Accept4, Getsockname and Getpeername of
// package syscall, because those of package unix make an additional system call,
// to learn the protocol of the socket.
package sockaddr

import (
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// AddrPort returns the IP address and port in sa, without a zone. It converts
// an IPv4-mapped IPv6 address to IPv4. If sa has no IP address, AddrPort
// returns the zero value.
func AddrPort(sa syscall.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *syscall.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *syscall.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), uint16(sa.Port))
	}
	return netip.AddrPort{}
}

// Sockaddr converts an address and port to the type that system calls use. It
// also returns the address family.
func Sockaddr(at netip.AddrPort) (family int, sa unix.Sockaddr) {
	ip := at.Addr().Unmap()
	if ip.Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(at.Port()), Addr: ip.As4()}
	}
	six := &unix.SockaddrInet6{Port: int(at.Port()), Addr: ip.As16()}
	if zone := ip.Zone(); zone != "" {
		if i, err := net.InterfaceByName(zone); err == nil {
			six.ZoneId = uint32(i.Index)
		}
	}
	return unix.AF_INET6, six
}
