// Package sockaddr converts IP addresses between the forms of package netip and
// of system calls.
package sockaddr

import (
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// AddrPort returns the IP address and port in sa, without a zone. It returns
// the zero value if the address is not an IP address. An IPv4 address mapped
// into IPv6 becomes IPv4.
func AddrPort(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), uint16(sa.Port))
	}
	return netip.AddrPort{}
}

// Sockaddr converts an address and port to the form of system calls. It also
// returns the address family.
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
