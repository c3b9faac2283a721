// Package limiter decides which requests a worker answers: not those of a
// blocked client, not more at the same time than the worker has places, and not
// more of one user than their share and their rate.
package limiter

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"schedrestd/auth"
	"schedrestd/gateway/worker/conns"
	"schedrestd/gateway/worker/count"
	"schedrestd/gateway/worker/proxy"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/internal/semaphore"
	"schedrestd/ipc/work"
)

// Config holds what a Limiter needs from other parts of the worker.
type Config struct {
	Setup   *work.Setup
	Rules   auth.Rules // which claims of a token name the user
	Table   *conns.Table
	Counts  *count.Counters
	Handler http.Handler                                      // answers the requests
	Refuse  func(http.ResponseWriter, *http.Request, error)   // answers the others
	Expired func(context.Context, auth.Rejection) (only bool) // reports whether a token is only out of date; may be nil
}

// A Limiter is the http.Handler of all requests, including HTTP/2 streams. Each
// request has a connection in the Table (see conns.Conn.With).
type Limiter struct {
	Config
	proxies proxy.Proxies
	places  *semaphore.Semaphore[string] // a request has no key before its user is known
	rates   *rate.Buckets[string]        // nil: no limit
	parked  *semaphore.Semaphore[string] // requests that wait for a change or an accounting daemon
}

var (
	// ErrBlocked is the error that a blocked client gets.
	ErrBlocked = errs.New(errs.TooMany, "too many failed requests from this address; temporarily blocked").
			WithHint("check the credential, and retry after the time in Retry-After")

	// errOverloaded is the answer to a request that is well-formed, but has
	// waited too long because too many requests were in progress.
	errOverloaded = errs.New(errs.Unavailable, "server busy: concurrency limit reached")
)

// shortenDelay is how long a request waits for its turn before the deadlines of
// other requests are shortened.
const shortenDelay = 200 * time.Millisecond

// New returns a Limiter.
func New(c Config) *Limiter {
	a, requests := c.Setup.Admission, limit.Requests.Of(cmp.Or(int(c.Setup.Requests), 1<<30))
	requests.Wait = c.Setup.Limits.Call
	l := &Limiter{
		Config:  c,
		proxies: proxy.Proxies{Admission: a},
		places:  semaphore.New[string](requests),
		parked:  semaphore.New[string](limit.Parked.Of(max(1, int(c.Setup.Watching), int(c.Setup.Requests)/2))),
	}
	if a.Rate > 0 {
		l.rates = rate.NewBuckets[string](limit.UserRequests.Of(max(1, float64(a.Burst)), float64(a.Rate)))
	}
	l.places.OnSlow(shortenDelay, l.Table.Shorten)
	return l
}

// Places returns how many places are taken, and how many requests wait for one.
func (l *Limiter) Places() (taken, waiting int) { return l.places.Counts() }

// Parked returns how many requests wait for a change, or follow changes.
func (l *Limiter) Parked() (n int) {
	n, _ = l.parked.Counts()
	return n
}

// Identities returns the number of users whose rates are limited at present.
func (l *Limiter) Identities() int {
	if l.rates == nil {
		return 0
	}
	return l.rates.Len()
}

func (l *Limiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.Counts.Requests.Add(1)
	r = l.proxies.WithData(r)
	source := l.proxies.Source(r)
	q := conns.From(r.Context()).Begin(w, r, source)
	defer q.Finish()
	if r.URL.Path == "/healthz" || r.URL.Path == "/livez" { // these report whether this process is alive, which does not depend on free places
		l.serve(q, r, nil, source)
		return
	}
	if wait := q.BlockedFor(); wait > 0 {
		l.refuseBlocked(q, r, wait)
		return
	}
	p, err := l.places.Acquire(r.Context(), "")
	if err != nil {
		l.Counts.Overloaded.Add(1)
		l.refuse(q, r, errOverloaded)
		return
	}
	taken := &place{Place: p, limiter: l, request: q}
	defer taken.Release()
	if wait := q.BlockedFor(); wait > 0 { // since the request began to wait
		taken.Release() // before the answer is sent, because the client might never read it
		l.refuseBlocked(q, r, wait)
		return
	}
	l.serve(q, r.WithContext(context.WithValue(r.Context(), placeKey{}, taken)), p, source)
}

// refuseBlocked answers a request of a blocked client.
func (l *Limiter) refuseBlocked(q *conns.Request, r *http.Request, wait time.Duration) {
	l.Counts.Paused.Add(1)
	l.refuse(q, r, &rest.RetryAfterError{Err: ErrBlocked, After: wait})
}

// refuse answers a request that gets no place. Its client, too, must read the
// answer in time.
func (l *Limiter) refuse(q *conns.Request, r *http.Request, err error) {
	q.Admit(nil)
	l.Refuse(q, r, err)
	q.Deliver()
}

func (l *Limiter) serve(q *conns.Request, r *http.Request, p conns.Place, source netip.Addr) {
	q.Admit(p)
	l.Handler.ServeHTTP(q, r)
	if q.Status() == http.StatusUnauthorized { // reported before the answer is sent, because the dispatcher accepts no offences on closed connections
		l.Counts.Unauthenticated.Add(1)
		l.recordUnauthenticated(r, source)
	}
	q.Deliver()
}

// recordUnauthenticated records that r was answered with 401. A client that
// repeats a rejected credential, or whose token is genuine, but out of date or of
// an unknown user, gets no penalty, because it is not guessing.
func (l *Limiter) recordUnauthenticated(r *http.Request, source netip.Addr) {
	if p, ok := r.Context().Value(placeKey{}).(*place); l.Setup.Admission.Threshold == 0 || ok && p.excused {
		return
	}
	rejected := auth.NewRejection(r, auth.Options{Rules: l.Rules})
	switch {
	case !l.Table.Reject(rejected.Hash) || l.Expired != nil && l.Expired(r.Context(), rejected):
	case source.IsValid():
		if wait, blocked := l.Table.OffendForwarded(source); blocked && l.Table.MayLog() {
			slog.Warn("source behind a proxy blocked", "forwarded_for", source.String(), "pause", wait,
				"hint", "if many users share this address, exempt it: SCHEDRESTD_EXEMPT="+exemption(source))
		}
	case !l.proxies.IsFrom(r):
		conns.From(r.Context()).Report(work.BadCredential, rejected.Hash)
	}
}

// exemption returns the value for SCHEDRESTD_EXEMPT that exempts an address.
func exemption(addr netip.Addr) string {
	if addr.Is6() {
		return addr.String() + "/64"
	}
	return addr.String()
}
