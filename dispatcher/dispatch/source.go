package dispatch

import (
	"net/netip"
	"time"

	"schedrestd/dispatcher/admission"
	"schedrestd/ipc"
	"schedrestd/rate"
)

// owners finds out which user a uid belongs to, because connections count
// against users, and a user may have tens of thousands of uids (subuid(5)).
type owners struct {
	of       func(uint32) uint32 // Options.OwnerOf
	names    *Names              // nil: all uids have names
	known    map[uint32]struct{} // uids that have a name
	unproved *rate.Bucket        // limits the uids that are assumed to have a name
}

// Limits on the uids that are assumed to have a name before the user database
// has answered: how many at once, and how many per second. All further uids
// count as one source until the database has answered.
const (
	unprovedBurst = 256
	unprovedRate  = 10
)

func newOwners(o Options) *owners {
	return &owners{of: o.OwnerOf, names: o.Names, known: map[uint32]struct{}{}, unproved: rate.New(unprovedBurst, unprovedRate, time.Now())}
}

// sourceOf returns the source of a connection. addr is its address, which is
// invalid for a UNIX socket. uid is the user of the client's process, or
// ipc.NoID if it is unknown. For a loopback address, the uid is the source if
// the kernel knows it.
func (o *owners) sourceOf(addr netip.Addr, uid uint32) admission.Source {
	if addr.IsValid() && (uid == ipc.NoID || !addr.IsLoopback()) {
		return admission.Address(addr)
	}
	if o.of != nil {
		uid = o.of(uid)
	}
	if !o.hasName(uid) {
		uid = ipc.NoID
	}
	return admission.User(uid)
}

// hasName reports whether uid has a name, or is assumed to have one. It does
// not wait for the user database.
func (o *owners) hasName(uid uint32) bool {
	if o.names == nil {
		return true
	}
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
	o.names.lookup(uid, func(bool, bool) {}) // the answer is cached for the next connection
	return true
}
