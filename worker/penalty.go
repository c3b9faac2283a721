package worker

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"schedrestd/auth"
	"schedrestd/errs"
	"schedrestd/handlers"
	"schedrestd/ipc"
	"schedrestd/penalty"
	"schedrestd/rate"
)

// offences is what clients do wrong. The parent is told of those whose connection it knows them by, and says who has to
// wait; behind a proxy, which alone knows who asks, this worker judges by itself, and nobody else is told: what a
// header says is no business of a process that may be root.
type offences struct {
	watch     *watch
	admission ipc.Admission
	counts    *counters
	outOfDate func(context.Context, auth.Rejection) bool // whether only its dates speak against a token; may be nil
	userClaim string

	mu        sync.Mutex // guards what follows
	forwarded *penalty.Table[netip.Addr]
	rejected  *penalty.Memory // the credentials that were answered 401
	reports   *rate.Bucket
	lines     *rate.Bucket // about those who wait
}

// Reports of this worker: so many at once, and then so many a second. What is more is not told, since who is over
// that by himself has to wait already. The parent takes twice as many.
const (
	reportBurst = 200
	reportRate  = 100
)

// How much is remembered of offences.
const (
	mostForwarded = 10_000 // sources behind proxies
	mostRejected  = 16_384 // credentials; 20 bytes each
)

func newOffences(a ipc.Admission, w *watch, counts *counters) *offences {
	rules := penalty.Rules{Threshold: a.Threshold, Cost: [penalty.Kinds]time.Duration{penalty.Auth: a.Auth}}
	return &offences{watch: w, admission: a, counts: counts, forwarded: penalty.New[netip.Addr](rules, mostForwarded),
		rejected: penalty.NewMemory(mostRejected),
		reports:  rate.New(reportBurst, reportRate, time.Now()), lines: rate.New(50, 5, time.Now())}
}

// malformed tells the parent that the client of connection id sent no request.
func (o *offences) malformed(id uint64) { o.report(&ipc.Offence{ID: id, What: ipc.WrongRequest}) }

// stalled reports that the client of connection id took nothing of an answer,
// and others waited for its place.
func (o *offences) stalled(id uint64) {
	o.counts.stalled.Add(1)
	o.malformed(id)
}

// handshake tells the parent what the client of connection id did, whose handshake failed with err.
func (o *offences) handshake(id uint64, err error) {
	what, wrong := blames(err)
	if !wrong {
		return
	}
	m := &ipc.Offence{ID: id, What: what}
	if refused, ok := errors.AsType[*tls.CertificateVerificationError](err); ok && len(refused.UnverifiedCertificates) > 0 {
		m.Credential = auth.CertificateHash(refused.UnverifiedCertificates[0].Raw)
		if !o.isNew(m.Credential) {
			return
		}
	}
	o.report(m)
}

// report tells the parent of an offence.
func (o *offences) report(m *ipc.Offence) {
	if o == nil || o.admission.Threshold == 0 || m.ID == 0 {
		return
	}
	o.mu.Lock()
	ok := o.reports.Take(time.Now(), 1)
	o.mu.Unlock()
	if !ok {
		o.counts.untold.Add(1)
		return
	}
	o.counts.told.Add(1)
	o.watch.report(m)
}

// wait is how long who sent r has to wait; 0: not at all.
func (o *offences) wait(r *http.Request, c *course) time.Duration {
	if o.admission.Threshold == 0 {
		return 0
	}
	if c != nil {
		if wait := o.watch.paused(c); wait > 0 {
			return wait
		}
	}
	if who := o.behind(r); who.IsValid() {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.forwarded.Wait(time.Now(), who)
	}
	return 0
}

// unauthenticated notes that r was answered 401. A client that repeats a rejected credential pays nothing for it,
// nor does one whose token is merely out of date: neither is guessing.
func (o *offences) unauthenticated(r *http.Request, c *course) {
	if o.admission.Threshold == 0 {
		return
	}
	rejected := auth.NewRejection(r, auth.Options{UserClaimField: o.userClaim})
	if !o.isNew(rejected.Hash) || o.outOfDate != nil && o.outOfDate(r.Context(), rejected) {
		return
	}
	if who := o.behind(r); who.IsValid() {
		o.mu.Lock()
		wait, begun := o.forwarded.Offend(time.Now(), who, penalty.Auth)
		o.mu.Unlock()
		if begun && o.mayTell() {
			slog.Warn("source behind a proxy blocked", "forwarded_for", who.String(), "pause", wait,
				"hint", "if many users share this address, exempt it: SCHEDRESTD_EXEMPT="+exemption(who))
		}
		return
	}
	if c != nil && !o.speaks(r) {
		o.report(&ipc.Offence{ID: c.id, What: ipc.WrongCredential, Credential: rejected.Hash})
	}
}

// isNew reports whether a credential was not rejected before.
func (o *offences) isNew(credential uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.rejected.Add(credential)
}

// exemption returns who as SCHEDRESTD_EXEMPT names it.
func exemption(who netip.Addr) string {
	if who.Is6() {
		return who.String() + "/64"
	}
	return who.String()
}

// mayTell tells whether a line may say that somebody has to wait: not as often as there are addresses.
func (o *offences) mayTell() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lines.Take(time.Now(), 1)
}

// speaks tells whether r comes from somebody who speaks for others.
func (o *offences) speaks(r *http.Request) bool {
	peer, ok := auth.PeerFrom(r.Context())
	at, _ := netip.ParseAddrPort(peer.Addr)
	return ok && o.admission.Speaks(at.Addr().Unmap(), peer.UID)
}

// mostHops is how many addresses of X-Forwarded-For are looked at.
const mostHops = 16

// behind is the source for which a proxy speaks, none when that has no penalties.
func (o *offences) behind(r *http.Request) netip.Addr {
	addr := o.forwardedFor(r)
	if !addr.IsValid() || o.admission.Exempts(addr) {
		return netip.Addr{}
	}
	return ipc.OneClient(addr)
}

// named is r with the address for which a proxy speaks beside the proxy's own, for the logs.
func (o *offences) named(r *http.Request) *http.Request {
	addr := o.forwardedFor(r)
	if !addr.IsValid() {
		return r
	}
	peer, _ := auth.PeerFrom(r.Context())
	peer.Forwarded = addr.String()
	return r.WithContext(auth.WithPeer(r.Context(), peer))
}

// forwardedFor is for whom a proxy speaks: the last address of X-Forwarded-For that is no proxy's. What stands before
// that anybody can have written. It is none when r does not come from a proxy, or that does not say.
func (o *offences) forwardedFor(r *http.Request) netip.Addr {
	lines := r.Header.Values("X-Forwarded-For")
	if len(lines) == 0 || !o.speaks(r) {
		return netip.Addr{}
	}
	rest := strings.Join(lines, ",")
	for range mostHops {
		i := strings.LastIndexByte(rest, ',')
		addr, ok := parseHop(rest[i+1:])
		switch {
		case !ok:
			return netip.Addr{}
		case !o.admission.Speaks(addr, ipc.NoID):
			return addr.Unmap().WithZone("")
		case i < 0:
			return netip.Addr{}
		}
		rest = rest[:i]
	}
	return netip.Addr{}
}

// parseHop reads an address, with a port or without.
func parseHop(text string) (netip.Addr, bool) {
	if text = strings.TrimSpace(text); len(text) > 64 {
		return netip.Addr{}, false
	}
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr(), true
	}
	addr, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return addr, err == nil
}

// errPaused is what who has to wait is told.
var errPaused = errs.New(errs.TooMany, "too many failed requests from this address; temporarily blocked").
	WithHint("check the credential, and retry after the time in Retry-After")

// late is err for who may come back after wait.
func late(err error, wait time.Duration) error { return &handlers.Later{Err: err, After: wait} }

// report says what the client of a connection did, unless the parent was told that it is closed.
func (w *watch) report(m *ipc.Offence) {
	w.saying.Lock()
	defer w.saying.Unlock()
	if w.of(m.ID) != nil {
		_ = w.tell(m)
	}
}

// pause has the client of connection id wait.
func (w *watch) pause(id uint64, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.list[id]; c != nil {
		c.pausedUntil = time.Now().Add(d)
	}
}

// paused is how long c's client still has to wait.
func (w *watch) paused(c *course) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(0, time.Until(c.pausedUntil))
}
