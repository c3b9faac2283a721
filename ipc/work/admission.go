package work

import (
	"net/netip"
	"slices"
	"time"
)

// Admission contains the settings for penalties and rate limits. The dispatcher
// applies the penalties to connections, and each worker applies them to clients
// behind a proxy. The workers apply the rate limits.
type Admission struct {
	Auth, Malformed, Crash time.Duration // what one offence of each kind adds to the client's debt; 0: nothing
	Threshold              time.Duration // the debt at which a client is blocked; 0: no penalties

	Exempt    []netip.Prefix // addresses without penalties
	Proxies   []netip.Prefix // addresses of proxies, whose X-Forwarded-For is trusted
	ProxyUIDs []uint32       // uids of proxies that connect over a UNIX socket

	Rate, Burst uint32 // limits on the requests from one identity: per second, and in a burst; Rate 0: no limit
}

// MaxPrefixes is the maximum number of elements in each of the lists Exempt,
// Proxies and ProxyUIDs.
const MaxPrefixes = 32

// IsProxy reports whether the peer with this address and uid is a trusted
// proxy. If addr is invalid, the peer has connected to a UNIX socket, and the
// uid decides. Without this check of the uid, any user who can connect to the
// socket could put any address into X-Forwarded-For.
func (a *Admission) IsProxy(addr netip.Addr, uid uint32) bool {
	if !addr.IsValid() {
		return slices.Contains(a.ProxyUIDs, uid)
	}
	return containsAddr(a.Proxies, addr)
}

// IsExempt reports whether addr has no penalties.
func (a *Admission) IsExempt(addr netip.Addr) bool {
	return addr.IsValid() && containsAddr(a.Exempt, addr)
}

func containsAddr(list []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(addr.Unmap().WithZone("")) })
}
