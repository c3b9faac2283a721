package work

import (
	"net/netip"

	"schedrestd/ipc"
)

// Lookup asks for the name of a user or group with a given uid or gid, or for
// the uid or gid of a user or group with a given name. A worker itself can
// neither read the user database nor start a program that reads it.
type Lookup struct {
	ID     uint64 // chosen by the worker and repeated in the answer
	Group  bool
	Number uint32 // the uid or gid to look up; used if Name is ""
	Name   string // a name whose number is wanted
}

func (q *Lookup) Walk(w *ipc.Walker) {
	w.Fields(&q.ID, &q.Group, &q.Number)
	w.Text(maxName, &q.Name)
}

// LookupResult answers the Lookup with the same ID.
type LookupResult struct {
	ID        uint64
	Available bool   // false: the user database is unavailable
	Name      string // answer for a number; "" when no user or group has the number
	Number    uint32 // answer for a name; NoID when no user or group has the name
}

func (k *LookupResult) Walk(w *ipc.Walker) {
	w.Fields(&k.ID, &k.Available)
	w.Text(maxName, &k.Name)
	w.Fields(&k.Number)
}

// HostLookup asks for the addresses of a host that the configuration names. The
// dispatcher can neither read /etc/hosts nor ask a name server.
type HostLookup struct {
	ID   uint64 // chosen by the dispatcher and repeated in the answer
	Name string
}

func (h *HostLookup) Walk(w *ipc.Walker) {
	w.Fields(&h.ID)
	w.Text(maxName, &h.Name)
}

// HostAddresses answers the HostLookup with the same ID.
type HostAddresses struct {
	ID        uint64
	Addresses []netip.Addr // in the order in which to try them; empty: the name can't be resolved
}

func (h *HostAddresses) Walk(w *ipc.Walker) {
	w.Fields(&h.ID)
	walkAddrs(w, &h.Addresses, MaxAddresses)
}
