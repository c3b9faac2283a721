package server

import (
	"fmt"
	"net"
	"net/netip"

	"schedrestd/internal/sockdiag"
)

// A source is the user or the machine that a connection is attributed to. The
// zero source represents all unknown clients.
type source struct {
	user bool
	uid  uint32     // if user is set
	addr netip.Addr // if user is not set; for IPv6 it is the network, because a client has many addresses
}

// String returns the source as it appears in the log.
func (s source) String() string {
	switch {
	case s.user:
		return fmt.Sprintf("uid %d", s.uid)
	case s.addr.Is6():
		return s.addr.String() + "/64"
	case s.addr.IsValid():
		return s.addr.String()
	}
	return "others"
}

// addrSource returns the source of c without asking the kernel. This is the
// user of a UNIX socket's peer, or the address of a TCP client.
func (c *conn) addrSource() source {
	if c.local {
		return source{user: true, uid: c.server.Owner(c.peer.UID)}
	}
	addr := addrPort(c.nc.RemoteAddr()).Addr()
	if addr.Is6() {
		addr = netip.PrefixFrom(addr.WithZone(""), 64).Masked().Addr()
	}
	return source{addr: addr}
}

// origin returns the source of the process that connected. For a client on this
// machine the kernel reports the user, even over TCP. The address would not be
// enough: one user can use millions of loopback addresses, and all users share
// 127.0.0.1. Asking the kernel takes longer than answering a ping, so origin is
// called only for connections that are logged, and for connections in a crowded
// pool. It is not safe for concurrent use.
func (c *conn) origin() source {
	if c.hasOrigin {
		return c.cachedOrigin
	}
	c.hasOrigin, c.cachedOrigin = true, c.addrSource()
	if !c.local {
		if uid, err := sockdiag.ClientUID(addrPort(c.nc.LocalAddr()), addrPort(c.nc.RemoteAddr())); err == nil {
			c.cachedOrigin = source{user: true, uid: c.server.Owner(uid)}
		}
	}
	return c.cachedOrigin
}

func addrPort(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := tcp.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
