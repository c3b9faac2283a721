package worker

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"schedrestd/auth"
	"schedrestd/gateway/worker/count"
	"schedrestd/gateway/worker/keys"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/internal/penalty"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// The type offences records the misbehaviour of clients. The worker reports an
// offence to the dispatcher, which decides whether to block the client. But a
// client behind a trusted proxy can be identified only by a header, and the
// dispatcher reads no headers. So the worker itself decides whether to block
// such a client. If the dispatcher did this, too, the worker would have to name
// addresses, and an attacker who controls one worker could block every client
// of the proxy.
type offences struct {
	tracker   *connTracker
	admission work.Admission
	counts    *count.Counters
	outOfDate func(context.Context, auth.Rejection) bool // reports whether a token is only out of date; may be nil
	userClaim string

	mu        sync.Mutex // guards the fields below
	forwarded *penalty.Table[netip.Addr]
	rejected  *penalty.Memory // credentials that were answered 401
	reports   *rate.Bucket    // limits reports to the dispatcher
	lines     *rate.Bucket    // limits log lines about offences
}

// Limits on this worker's reports of offences: how many at once, and how many
// per second. The worker does not send more, because a source that causes so
// many is already blocked. The dispatcher permits twice as many reports. A
// worker that sends more than that violates the protocol.
const (
	reportBurst = 200
	reportRate  = 100
)

// Limits on the stored offences.
const (
	maxForwarded = 10_000 // number of sources behind proxies
	maxRejected  = 16_384 // number of credentials; 20 bytes each
)

func newOffences(a work.Admission, tracker *connTracker, counts *count.Counters) *offences {
	rules := penalty.Rules{Threshold: a.Threshold, Cost: [penalty.Kinds]time.Duration{penalty.Auth: a.Auth}}
	return &offences{
		tracker:   tracker,
		admission: a,
		counts:    counts,
		forwarded: penalty.New[netip.Addr](rules, maxForwarded),
		rejected:  penalty.NewMemory(maxRejected),
		reports:   rate.New(reportBurst, reportRate, time.Now()),
		lines:     rate.New(50, 5, time.Now()),
	}
}

// reportMalformed reports that the client of connection id sent malformed
// input.
func (o *offences) reportMalformed(id uint64) { o.report(&work.Offence{ID: id, Kind: work.BadRequest}) }

// reportStalled reports that the client of connection id stopped reading an
// answer while other requests waited for their turn.
func (o *offences) reportStalled(id uint64) {
	o.counts.Stalled.Add(1)
	o.reportMalformed(id)
}

// reportHandshake reports the offence of a client whose handshake failed with
// err.
func (o *offences) reportHandshake(id uint64, err error) {
	offence, found := keys.Offence(err)
	if !found || offence.Kind == work.BadCredential && offence.Credential != 0 && !o.isNew(offence.Credential) {
		return
	}
	offence.ID = id
	o.report(&offence)
}

// report sends an offence to the dispatcher.
func (o *offences) report(m *work.Offence) {
	if o == nil || o.admission.Threshold == 0 || m.ID == 0 {
		return
	}
	o.mu.Lock()
	ok := o.reports.Take(time.Now(), 1)
	o.mu.Unlock()
	if !ok {
		o.counts.Unreported.Add(1)
		return
	}
	o.counts.Reported.Add(1)
	o.tracker.report(m)
}

// blockedFor returns how much longer the client of r is blocked, or 0.
func (o *offences) blockedFor(r *http.Request, c *connState) time.Duration {
	if o.admission.Threshold == 0 {
		return 0
	}
	if c != nil {
		if wait := o.tracker.blockedFor(c); wait > 0 {
			return wait
		}
	}
	if source := o.proxiedSource(r); source.IsValid() {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.forwarded.BlockedFor(time.Now(), source)
	}
	return 0
}

// recordUnauthenticated records that r was answered with 401. A client that
// repeats a rejected credential, or whose token is only out of date, gets no
// penalty, because it is not guessing.
func (o *offences) recordUnauthenticated(r *http.Request, c *connState) {
	if o.admission.Threshold == 0 {
		return
	}
	rejected := auth.NewRejection(r, auth.Options{UserClaimField: o.userClaim})
	if !o.isNew(rejected.Hash) || o.outOfDate != nil && o.outOfDate(r.Context(), rejected) {
		return
	}
	if source := o.proxiedSource(r); source.IsValid() {
		o.mu.Lock()
		wait, blocked := o.forwarded.Offend(time.Now(), source, penalty.Auth)
		o.mu.Unlock()
		if blocked && o.mayLog() {
			slog.Warn("source behind a proxy blocked", "forwarded_for", source.String(), "pause", wait,
				"hint", "if many users share this address, exempt it: SCHEDRESTD_EXEMPT="+exemption(source))
		}
		return
	}
	if c != nil && !o.isFromProxy(r) {
		o.report(&work.Offence{ID: c.id, Kind: work.BadCredential, Credential: rejected.Hash})
	}
}

// isNew records a rejected credential, and reports whether this is its first
// rejection.
func (o *offences) isNew(credential uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.rejected.Add(credential)
}

// exemption returns the value for SCHEDRESTD_EXEMPT that exempts an address.
func exemption(addr netip.Addr) string {
	if addr.Is6() {
		return addr.String() + "/64"
	}
	return addr.String()
}

// mayLog reports whether another line about an offence may be logged. Without
// this limit, a client with many addresses could fill the log. Counters and
// metrics count all offences.
func (o *offences) mayLog() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lines.Take(time.Now(), 1)
}

// logLine logs a line of net/http.
func (o *offences) logLine(line string) {
	if o.mayLog() {
		slog.Warn(strings.TrimSpace(line))
	}
}

// isFromProxy reports whether r comes from a trusted proxy.
func (o *offences) isFromProxy(r *http.Request) bool {
	peer, ok := auth.PeerFrom(r.Context())
	addrPort, _ := netip.ParseAddrPort(peer.Addr)
	return ok && o.admission.IsProxy(addrPort.Addr().Unmap(), peer.UID)
}

// maxHops limits how many addresses in X-Forwarded-For are examined.
const maxHops = 16

// proxiedSource returns the source of a client behind a trusted proxy. It
// returns the zero value if the proxy names no client, or if the source is
// exempt.
func (o *offences) proxiedSource(r *http.Request) netip.Addr {
	addr := o.forwardedFor(r)
	if !addr.IsValid() || o.admission.IsExempt(addr) {
		return netip.Addr{}
	}
	return penalty.ClientAddr(addr)
}

// withProxyData adds the data from a trusted proxy to the context of r, for the
// logs: the client's address and the id of the request.
func (o *offences) withProxyData(r *http.Request) *http.Request {
	addr, id := o.forwardedFor(r), ""
	if o.isFromProxy(r) {
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
func (o *offences) forwardedFor(r *http.Request) netip.Addr {
	lines := r.Header.Values("X-Forwarded-For")
	if len(lines) == 0 || !o.isFromProxy(r) {
		return netip.Addr{}
	}
	rest := strings.Join(lines, ",")
	for range maxHops {
		i := strings.LastIndexByte(rest, ',')
		addr, ok := parseHop(rest[i+1:])
		switch {
		case !ok:
			return netip.Addr{}
		case !o.admission.IsProxy(addr, ipc.NoID):
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

// errPaused is the error that a blocked client gets.
var errPaused = errs.New(errs.TooMany, "too many failed requests from this address; temporarily blocked").
	WithHint("check the credential, and retry after the time in Retry-After")

// withRetryAfter returns an error that contains err and the time that the
// client must wait before it retries.
func withRetryAfter(err error, wait time.Duration) error {
	return &rest.RetryAfterError{Err: err, After: wait}
}

// report reports an offence to the dispatcher, unless the connection has
// already been reported as done.
func (t *connTracker) report(m *work.Offence) {
	t.reportMu.Lock()
	defer t.reportMu.Unlock()
	if c := t.lookup(m.ID); c != nil && !c.silent {
		_ = t.send(m)
	}
}

// pause blocks the client of a connection for the time d.
func (t *connTracker) pause(id uint64, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.list[id]; c != nil {
		c.pausedUntil = time.Now().Add(d)
	}
}

// blockedFor returns how much longer c's client is blocked, or 0.
func (t *connTracker) blockedFor(c *connState) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(0, time.Until(c.pausedUntil))
}
