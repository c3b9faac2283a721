package dispatch

import (
	"net/netip"
	"time"

	"schedrestd/gateway/dispatcher/admission"
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
)

// An owners finds the user who owns a uid. A user may have tens of thousands of
// uids (subuid(5)), which must all be one source.
type owners struct {
	ownerOf func(uint32) uint32 // Options.OwnerOf
	names   *Names
	named   map[uint32]struct{} // uids that have a name
	assumed *rate.Bucket        // limits the uids that are assumed to have a name
}

func newOwners(o Options) *owners {
	return &owners{ownerOf: o.OwnerOf, names: o.Names, named: map[uint32]struct{}{},
		assumed: rate.New(limit.AssumedUIDs, time.Now())}
}

// sourceOf returns the source of a connection. addr is the client's address; it
// is invalid for a client on a UNIX socket. uid is the uid of the client, or
// ipc.NoID if it is unknown. For a client on a UNIX socket or a loopback
// address, the source is the user, if known.
func (o *owners) sourceOf(addr netip.Addr, uid uint32) admission.Source {
	if addr.IsValid() && (uid == ipc.NoID || !addr.IsLoopback()) {
		return admission.Address(addr)
	}
	if uid = o.ownerOf(uid); !o.hasName(uid) {
		uid = ipc.NoID
	}
	return admission.User(uid)
}

// hasName reports whether uid has a name, or is assumed to have one. It does
// not wait for the user database.
func (o *owners) hasName(uid uint32) bool {
	if _, ok := o.named[uid]; ok {
		return true
	}
	if named, ok := o.names.cached(uid); ok {
		if !named {
			return false
		}
		if len(o.named) >= maxNames {
			clear(o.named)
		}
		o.named[uid] = struct{}{}
		return true
	}
	if !o.assumed.Take(time.Now(), 1) {
		return false
	}
	o.names.lookup(uid, func(bool, bool) {}) // the answer is cached for the next connection
	return true
}
