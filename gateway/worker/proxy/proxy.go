// Package proxy determines on whose behalf a proxy sends a request, and with
// which id. The headers that say so may be forged, so only those of the trusted
// proxies count (SCHEDRESTD_TRUSTED_PROXIES).
package proxy

import (
	"net/http"
	"net/netip"
	"strings"

	"schedrestd/auth"
	"schedrestd/internal/penalty"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// Proxies knows the trusted proxies.
type Proxies struct{ Admission work.Admission }

// IsFrom reports whether r comes from a trusted proxy.
func (p Proxies) IsFrom(r *http.Request) bool {
	if len(p.Admission.Proxies)+len(p.Admission.ProxyUIDs) == 0 {
		return false
	}
	peer, ok := auth.PeerFrom(r.Context())
	addrPort, _ := netip.ParseAddrPort(peer.Addr)
	return ok && p.Admission.IsProxy(addrPort.Addr().Unmap(), peer.UID)
}

// maxHops limits how many addresses in X-Forwarded-For are examined.
const maxHops = 16

// Source returns the source of a client behind a trusted proxy. It returns the
// zero value if the proxy names no client, or if the source is exempt.
func (p Proxies) Source(r *http.Request) netip.Addr {
	addr := p.forwardedFor(r)
	if !addr.IsValid() || p.Admission.IsExempt(addr) {
		return netip.Addr{}
	}
	return penalty.ClientAddr(addr)
}

// WithData adds the data from a trusted proxy to the context of r, for the
// logs: the client's address and the id of the request.
func (p Proxies) WithData(r *http.Request) *http.Request {
	addr, id := p.forwardedFor(r), ""
	if p.IsFrom(r) {
		id = proxyID(r.Header)
	}
	if !addr.IsValid() && id == "" {
		return r
	}
	peer, _ := auth.PeerFrom(r.Context())
	if peer.RequestID = id; addr.IsValid() {
		peer.Forwarded = addr.String()
	}
	return r.WithContext(auth.WithPeer(r.Context(), peer))
}

// forwardedFor returns the address of the client that a trusted proxy names:
// the last address in X-Forwarded-For that does not belong to a proxy. The
// addresses before it may be forged. The result is invalid if r does not come
// from a proxy, or the proxy names no client.
func (p Proxies) forwardedFor(r *http.Request) netip.Addr {
	lines := r.Header.Values("X-Forwarded-For")
	if len(lines) == 0 || !p.IsFrom(r) {
		return netip.Addr{}
	}
	rest := strings.Join(lines, ",")
	for range maxHops {
		i := strings.LastIndexByte(rest, ',')
		addr, ok := parseHop(rest[i+1:])
		switch {
		case !ok:
			return netip.Addr{}
		case !p.Admission.IsProxy(addr, ipc.NoID):
			return addr.Unmap().WithZone("")
		case i < 0:
			return netip.Addr{}
		}
		rest = rest[:i]
	}
	return netip.Addr{}
}

// parseHop parses an address, with or without a port.
func parseHop(text string) (netip.Addr, bool) {
	if text = strings.TrimSpace(text); len(text) > 64 {
		return netip.Addr{}, false
	}
	if addrPort, err := netip.ParseAddrPort(text); err == nil {
		return addrPort.Addr(), true
	}
	addr, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return addr, err == nil
}
