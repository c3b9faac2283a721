package admission

import (
	"fmt"
	"net/netip"

	"schedrestd/ipc"
	"schedrestd/penalty"
)

// Source is what a connection counts against: an IPv4 address, an IPv6 /64,
// which usually belongs to one machine, or a user. So one client can't appear
// as many. A Source is comparable.
type Source struct {
	addr  netip.Addr
	uid   uint32 // ipc.NoID stands for all uids without a name
	local bool
}

// Address returns the source of a connection from addr. All loopback addresses
// are one source, because a client can choose any address from 127.0.0.0/8.
func Address(addr netip.Addr) Source { return Source{addr: penalty.ClientAddr(addr)} }

// User returns the source of a connection from a process on this machine that
// runs as uid. ipc.NoID stands for all uids without a name.
func User(uid uint32) Source { return Source{uid: uid, local: true} }

// String returns the source as the log shows it.
func (s Source) String() string {
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
