package privsep

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"schedrestd/ipc"
	"schedrestd/rate"
)

// source is where a connection comes from, as far as one client can't be many: its IPv4
// address, its /64 of IPv6, which one machine has for itself, or its uid. The uid is that
// of the peer of a UNIX socket, or of the process that has the other end of a loopback
// connection. Of loopback connections whose uid is unknown all are one source: a client
// chooses its address from 127.0.0.0/8.
type source struct {
	addr  netip.Addr
	uid   uint32 // ipc.NoID stands for all uids without a name
	local bool
}

// owners finds out for whom a uid counts. A user may have tens of thousands (subuid(5)).
type owners struct {
	of    func(uint32) uint32 // Config.OwnerOf
	names *named              // nil: all uids have names

	mu       sync.Mutex
	known    map[uint32]struct{} // uids that have a name
	unproved *rate.Bucket        // of uids that are taken to have one until that is known
}

// How many uids are taken to have a name while the user database is asked: at once, and
// per second. While it can't be asked, further ones count together.
const (
	unprovedBurst = 256
	unprovedRate  = 10
)

func newOwners(c Config, names *named) *owners {
	return &owners{of: c.OwnerOf, names: names, known: map[uint32]struct{}{}, unproved: rate.New(unprovedBurst, unprovedRate, time.Now())}
}

// sourceOf returns the source of a connection from addr, which is invalid for a UNIX
// socket, by a process of uid, which is ipc.NoID when it is unknown.
func (o *owners) sourceOf(addr netip.Addr, uid uint32) source {
	if addr.IsValid() && (uid == ipc.NoID || !addr.IsLoopback()) {
		return source{addr: ipc.OneClient(addr)}
	}
	if o.of != nil {
		uid = o.of(uid)
	}
	if !o.hasName(uid) {
		uid = ipc.NoID
	}
	return source{uid: uid, local: true}
}

// hasName reports whether a user has that uid. It does not wait for the user database.
func (o *owners) hasName(uid uint32) bool {
	if o.names == nil {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.known[uid]; ok {
		return true
	}
	if named, ok := o.names.kept(uid); ok {
		if !named {
			return false
		}
		if len(o.known) >= maxNames {
			clear(o.known)
		}
		o.known[uid] = struct{}{}
		return true
	}
	if !o.unproved.Take(time.Now(), 1) {
		return false
	}
	o.names.ask(uid, func(bool, bool) {}) // kept for the next connection
	return true
}

// String is the source as the log has it.
func (s source) String() string {
	switch {
	case s.local && s.uid == ipc.NoID:
		return "uids without a name"
	case s.local:
		return fmt.Sprintf("uid %d", s.uid)
	case s.addr.IsLoopback():
		return "loopback"
	case s.addr.Is6():
		return s.addr.String() + "/64"
	}
	return s.addr.String()
}

// exemption returns how an administrator exempts a client that stands for many users.
func (c *connection) exemption() string {
	addr, err := netip.ParseAddrPort(c.Addr)
	switch {
	case err != nil:
		return fmt.Sprintf("if it is a proxy's, name it: SCHEDRESTD_TRUSTED_PROXIES=unix:%d", c.UID)
	case addr.Addr().IsLoopback():
		return "if it is a portal or a proxy, exempt loopback, and with it every user of this machine: SCHEDRESTD_EXEMPT=127.0.0.0/8,::1"
	}
	return fmt.Sprintf("if a portal, a proxy or a NAT with many users is there, exempt it: SCHEDRESTD_EXEMPT=%s", c.source)
}
