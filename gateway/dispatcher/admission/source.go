package admission

import (
	"fmt"
	"net/netip"

	"schedrestd/internal/penalty"
	"schedrestd/ipc"
)

// Source is the unit for counting connections: a user, an IPv4 address, or an
// IPv6 /64. A whole /64 usually belongs to one machine, which could otherwise
// appear as many sources. A Source is comparable.
type Source struct {
	addr  netip.Addr
	uid   uint32 // ipc.NoID stands for all uids without a name
	local bool
}

// Address returns the source of connections from addr. All loopback addresses
// are one source, because a client can choose any address in 127.0.0.0/8.
func Address(addr netip.Addr) Source { return Source{addr: penalty.ClientAddr(addr)} }

// User returns the source of connections from local processes with the given
// uid. ipc.NoID stands for all uids that have no name.
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
