package ipc

import (
	"net/netip"
	"slices"
	"time"
)

// Wrong is what a client did wrong, as its worker saw it.
type Wrong uint8

// The wrongs.
const (
	WrongCredential Wrong = iota + 1 // a request was answered 401
	WrongRequest                     // what came was no request
)

// Offence says that the client of connection ID did wrong. It names nobody: whose connection that is the parent
// knows, so that a captured worker can speak ill of those alone who are in its hands.
//
// Credential is a hash of what was rejected, by which the parent tells a credential that is tried again from
// another guess. It means nothing for a WrongRequest.
type Offence struct {
	ID         uint64
	What       Wrong
	Credential uint64
}

func (o *Offence) Walk(w *Walker) {
	w.Fields(&o.ID)
	Enum(w, &o.What, "wrong", WrongCredential, WrongRequest)
	w.Fields(&o.Credential)
}

// Pause answers an Offence: whoever is at the other end of connection ID has to wait for so many seconds, and is
// told so, whatever he asks.
type Pause struct {
	ID      uint64
	Seconds uint16
}

func (p *Pause) Walk(w *Walker) { w.Fields(&p.ID, &p.Seconds) }

// Admission is who has to wait for what, and who need not. The parent goes by it, and each worker where the
// parent can't see who asks.
type Admission struct {
	Auth, Malformed, Crash time.Duration // what an offence costs; 0: nothing
	Threshold              time.Duration // what a source may owe for each; 0: there are no penalties

	Exempt  []netip.Prefix // who has no penalties
	Proxies []netip.Prefix // who speaks for others, whom X-Forwarded-For names
	Peers   []uint32       // … over a UNIX socket, by the uid that the kernel tells

	Rate, Burst uint32 // requests of one identity per second, and at once; 0: as many as it likes
}

// MaxPrefixes is how many Exempt, Proxies and Peers may have, each.
const MaxPrefixes = 32

func (a *Admission) Walk(w *Walker) {
	w.Fields(&a.Auth, &a.Malformed, &a.Crash, &a.Threshold)
	List(w, &a.Exempt, MaxPrefixes, 2, func(p *netip.Prefix) { w.Fields(p) })
	List(w, &a.Proxies, MaxPrefixes, 2, func(p *netip.Prefix) { w.Fields(p) })
	List(w, &a.Peers, MaxPrefixes, 4, func(uid *uint32) { w.Fields(uid) })
	w.Fields(&a.Rate, &a.Burst)
}

// Speaks tells whether who connects from addr speaks for others. Over a UNIX socket that is invalid, and uid counts:
// who may connect to a socket of mode 0666 is anybody, and could write anybody's address into X-Forwarded-For.
func (a *Admission) Speaks(addr netip.Addr, uid uint32) bool {
	if !addr.IsValid() {
		return slices.Contains(a.Peers, uid)
	}
	return within(a.Proxies, addr)
}

// Exempts tells whether who connects from addr has no penalties.
func (a *Admission) Exempts(addr netip.Addr) bool {
	return addr.IsValid() && within(a.Exempt, addr)
}

func within(list []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(addr.Unmap().WithZone("")) })
}

// OneClient returns the address that stands for all those that one client may choose
// from: its /64 of IPv6, or the whole of loopback. Of IPv4 it is the address itself.
func OneClient(addr netip.Addr) netip.Addr {
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
