package ipc

import (
	"net/netip"
	"slices"
	"time"
)

// Wrong is an offence of a client, as reported by its worker.
type Wrong uint8

// The offences.
const (
	WrongCredential Wrong = iota + 1 // a request was answered 401
	WrongRequest                     // the client sent no valid request
)

// Offence reports what the client of connection ID did. It does not name the client,
// since the parent knows it: a compromised worker can accuse only clients whose
// connections it holds.
//
// Credential is a hash of the rejected credential, by which the parent recognizes a
// credential that is tried again. It has no meaning for a WrongRequest.
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

// Pause tells the worker to answer every request of connection ID with 429 for
// Seconds.
type Pause struct {
	ID      uint64
	Seconds uint16
}

func (p *Pause) Walk(w *Walker) { w.Fields(&p.ID, &p.Seconds) }

// Admission has the rules for penalties and rates. The parent applies them to
// connections, and each worker applies them to clients behind a proxy.
type Admission struct {
	Auth, Malformed, Crash time.Duration // the cost of an offence; 0: none
	Threshold              time.Duration // the debt at which a source is blocked; 0: there are no penalties

	Exempt  []netip.Prefix // addresses without penalties
	Proxies []netip.Prefix // addresses of proxies, whose X-Forwarded-For is trusted
	Peers   []uint32       // uids of proxies that connect over a UNIX socket

	Rate, Burst uint32 // requests of one identity per second, and at once; 0: no limit
}

// MaxPrefixes is the largest length of each of Exempt, Proxies and Peers.
const MaxPrefixes = 32

func (a *Admission) Walk(w *Walker) {
	w.Fields(&a.Auth, &a.Malformed, &a.Crash, &a.Threshold)
	List(w, &a.Exempt, MaxPrefixes, 2, func(p *netip.Prefix) { w.Fields(p) })
	List(w, &a.Proxies, MaxPrefixes, 2, func(p *netip.Prefix) { w.Fields(p) })
	List(w, &a.Peers, MaxPrefixes, 4, func(uid *uint32) { w.Fields(uid) })
	w.Fields(&a.Rate, &a.Burst)
}

// Speaks reports whether the peer is a trusted proxy. An invalid addr stands for a
// UNIX socket, where uid decides: everyone can connect to a socket of mode 0666 and
// could put any address into X-Forwarded-For.
func (a *Admission) Speaks(addr netip.Addr, uid uint32) bool {
	if !addr.IsValid() {
		return slices.Contains(a.Peers, uid)
	}
	return within(a.Proxies, addr)
}

// Exempts reports whether addr has no penalties.
func (a *Admission) Exempts(addr netip.Addr) bool {
	return addr.IsValid() && within(a.Exempt, addr)
}

func within(list []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(addr.Unmap().WithZone("")) })
}

// OneClient returns the address that stands for all addresses that one client can
// use: the first one of its IPv6 /64, 127.0.0.1 for loopback, or the IPv4 address
// itself.
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
