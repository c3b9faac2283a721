package penalty

import "net/netip"

// ClientAddr returns the same address for all addresses that one client can
// use. An IPv6 address becomes the first address of its /64. A loopback address
// becomes 127.0.0.1. Any other IPv4 address stays as it is.
func ClientAddr(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	switch {
	case addr.IsLoopback():
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case addr.Is6():
		net, _ := addr.Prefix(64)
		addr = net.Addr()
	}
	return addr
}
