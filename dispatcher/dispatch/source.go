package dispatch

import (
	"net/netip"
	"time"

	"schedrestd/dispatcher/admission"
	"schedrestd/ipc"
	"schedrestd/rate"
)

// owners finds out for which user a uid counts. A user may have tens of thousands (subuid(5)).
type owners struct {
	of       func(uint32) uint32 // Options.OwnerOf
	names    *Names              // nil: all uids have names
	known    map[uint32]struct{} // uids that have a name
	unproved *rate.Bucket        // of uids that are taken to have one until that is known
}

// How many uids are taken to have a name while the user database is asked: at once, and
// per second. While it can't be asked, further ones count together.
const (
	unprovedBurst = 256
	unprovedRate  = 10
)

func newOwners(o Options) *owners {
	return &owners{of: o.OwnerOf, names: o.Names, known: map[uint32]struct{}{}, unproved: rate.New(unprovedBurst, unprovedRate, time.Now())}
}

// sourceOf returns the source of a connection from addr, which is invalid for a UNIX
// socket, by a process of uid, which is ipc.NoID when it is unknown. On loopback the
// uid counts, if the kernel knows that of the process at the other end.
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

// hasName reports whether a user has that uid. It does not wait for the user database.
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
	o.names.lookup(uid, func(bool, bool) {}) // kept for the next connection
	return true
}
