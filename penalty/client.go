package penalty

import "net/netip"

// ClientAddr returns one address for all addresses that the client with the
// address addr can use: the first address of its IPv6 /64, 127.0.0.1 for
// loopback, or the IPv4 address itself.
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
