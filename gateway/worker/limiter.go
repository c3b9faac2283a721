package worker

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"schedrestd/gateway/worker/clientconn"
	"schedrestd/internal/rate"
	"schedrestd/internal/semaphore"
	"schedrestd/ipc/work"
)

// requestLimiter limits how many requests, including HTTP/2 streams, this
// worker answers concurrently. While connections wait to be admitted, or
// requests wait for their turn, requestLimiter shortens the deadlines of the
// requests that are being answered.
type requestLimiter struct {
	server   *server
	handlers http.Handler
	places   *semaphore.Semaphore[string]
	rates    *rate.Buckets[string]
	parked   *semaphore.Semaphore[string] // requests that wait for a change

	mu           sync.Mutex               // guards the fields below
	active       map[*slowClient]struct{} // requests that are being answered
	waitingSince time.Time                // when connections began to wait for a slot, as far as is known
	lastWait     time.Time                // last time at which a connection was known to be waiting
}

func newRequestLimiter(s *server, setup *work.Setup, handlers http.Handler) *requestLimiter {
	l := &requestLimiter{
		server:   s,
		handlers: handlers,
		places:   newPlaces(setup.Requests, setup.Limits.Call),
		rates:    newRates(setup.Admission),
		parked:   semaphore.New[string](maxParked, maxParked/2, 0),
		active:   map[*slowClient]struct{}{},
	}
	s.tracker.shorten = l.shortenDeadlines
	l.places.OnSlow(shortenDelay, func() { l.shortenDeadlines(nil) })
	return l
}

func (l *requestLimiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.server.counts.Requests.Add(1)
	r = l.server.offences.withProxyData(r)
	c, ok := r.Context().Value(connStateKey{}).(*connState)
	if ok {
		l.server.tracker.beginRequest(c)
		defer l.server.tracker.finishRequest(c)
		// This header makes a blocked client reconnect, so that the dispatcher
		// refuses the new connection. On the old connection, the worker would
		// have to answer and log every request from the client. With HTTP/2,
		// net/http sends GOAWAY instead of this header.
		if l.server.retired.Load() || l.server.tracker.isClosing(c) || l.server.tracker.blockedFor(c) > 0 {
			w.Header().Set("Connection", "close")
		}
	}
	if r.URL.Path == "/healthz" || r.URL.Path == "/livez" { // these report whether this process is alive, which does not depend on free places
		l.serve(w, r, c)
		return
	}
	if wait := l.server.offences.blockedFor(r, c); wait > 0 {
		l.refusePaused(w, r, wait)
		return
	}
	place, err := l.places.Acquire(r.Context(), "")
	if err != nil {
		l.server.counts.Overloaded.Add(1)
		l.server.answerError(w, r, errOverloaded)
		return
	}
	one := &inflight{Place: place, limiter: l}
	defer func() { one.Release() }() // a request that has waited for a change has another place now
	// The client may have been blocked while the request waited. The request's
	// place in the semaphore is freed before the answer is sent, because the
	// client might never read the answer.
	if wait := l.server.offences.blockedFor(r, c); wait > 0 {
		place.Release()
		if ok && l.server.tracker.blockedFor(c) > 0 {
			w.Header().Set("Connection", "close")
		}
		l.refusePaused(w, r, wait)
		return
	}
	l.serve(w, r.WithContext(context.WithValue(r.Context(), inflightKey{}, one)), c)
}

// refusePaused answers a request of a blocked client.
func (l *requestLimiter) refusePaused(w http.ResponseWriter, r *http.Request, wait time.Duration) {
	l.server.counts.Paused.Add(1)
	l.server.answerError(w, r, withRetryAfter(errPaused, wait))
}

func (l *requestLimiter) serve(w http.ResponseWriter, r *http.Request, c *connState) {
	p := l.newSlowClient(w, r, c)
	defer l.finish(p)
	l.handlers.ServeHTTP(p, r)
	if p.status == http.StatusUnauthorized { // reported before the answer is sent, because the dispatcher accepts no offences on closed connections
		l.server.counts.Unauthenticated.Add(1)
		l.server.offences.recordUnauthenticated(r, c)
	}
	p.flush()
}

// shortenDelay is how long a request waits for its turn before the deadlines of
// other requests are shortened.
const shortenDelay = 200 * time.Millisecond

type connStateKey struct{}

// connContext returns the context for the requests of a connection.
func (s *server) connContext(ctx context.Context, outer net.Conn) context.Context {
	if c := s.tracker.lookup(idOf(outer)); c != nil {
		ctx = context.WithValue(ctx, connStateKey{}, c)
	}
	return withPeer(ctx, outer)
}

// idOf returns the number of the connection that c wraps, or 0 if it has none.
func idOf(c net.Conn) uint64 {
	if raw := clientconn.Of(c); raw != nil {
		return raw.ID
	}
	return 0
}

// reclaim closes connection id if possible, because other clients are waiting
// for its slot.
func (s *server) reclaim(id uint64) { s.tracker.reclaimID(id) }

// retire makes each connection close after its next answer, and ends the worker
// when all connections are closed.
func (s *server) retire() {
	s.retired.Store(true)
	s.stopWaiting("the gateway has new settings")
	go func() {
		s.openConns.Wait()
		s.exit <- 0
	}()
}
