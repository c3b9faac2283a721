package worker

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"schedrestd/ipc"
	"schedrestd/semaphore"
)

// gate stands before the handlers: it lets in as many requests at a time as this worker may answer,
// streams of HTTP/2 too, and has connections end that others wait for.
type gate struct {
	server   *server
	handlers http.Handler
	places   *semaphore.Semaphore[string]
	rates    *rates

	mu      sync.Mutex
	inside  map[*pace]struct{} // the requests that have room, or need none
	pressed time.Time          // since when somebody has been waiting for a slot, as far as is known
	last    time.Time          // when that was known last
}

func newGate(s *server, setup *ipc.Setup, handlers http.Handler) *gate {
	g := &gate{server: s, handlers: handlers, places: places(setup.Requests, setup.Limits.Call),
		rates: newRates(setup.Admission), inside: map[*pace]struct{}{}}
	s.watch.hurry = g.hurry
	return g
}

// ServeHTTP is http.Handler's.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.server.counts.requests.Add(1)
	r = g.server.offences.named(r)
	c, ok := r.Context().Value(courseKey{}).(*course)
	if ok {
		g.server.watch.begin(c)
		defer g.server.watch.finish(c)
		// HTTP/2 says GOAWAY for it. Who has to wait does so outside, where the parent turns him away: here each of his requests
		// would be answered, and be a line of the log.
		if g.server.retired.Load() || g.server.watch.isAsked(c) || g.server.watch.paused(c) > 0 {
			w.Header().Set("Connection", "close")
		}
	}
	if r.URL.Path == "/healthz" { // whether this process lives is no matter of room
		g.serve(w, r, c)
		return
	}
	if wait := g.server.offences.wait(r, c); wait > 0 {
		g.refusePaused(w, r, wait)
		return
	}
	soon := time.AfterFunc(crowding, func() { g.hurry(nil) })
	place, err := g.places.Acquire(r.Context(), "")
	soon.Stop()
	if err != nil {
		g.server.counts.crowded.Add(1)
		g.refuse(w, r, errCrowded)
		return
	}
	defer place.Release()
	// A pause may have begun while the request waited. The seat is given back
	// first: the client may not read the answer.
	if wait := g.server.offences.wait(r, c); wait > 0 {
		place.Release()
		if ok && g.server.watch.paused(c) > 0 {
			w.Header().Set("Connection", "close")
		}
		g.refusePaused(w, r, wait)
		return
	}
	g.serve(w, r.WithContext(context.WithValue(r.Context(), seatKey{}, &seat{Place: place, gate: g})), c)
}

// refusePaused answers a request whose client has to wait for its offences.
func (g *gate) refusePaused(w http.ResponseWriter, r *http.Request, wait time.Duration) {
	g.server.counts.paused.Add(1)
	g.refuse(w, r, late(errPaused, wait))
}

// refuse answers a request that is not let in.
func (g *gate) refuse(w http.ResponseWriter, r *http.Request, why error) {
	g.server.own.refusing(w, r, why)
	if r.ContentLength != 0 && r.ProtoMajor == 1 {
		dropRest(http.NewResponseController(w))
	}
}

func (g *gate) serve(w http.ResponseWriter, r *http.Request, c *course) {
	p := g.newPace(w, r, c)
	defer g.leave(p)
	g.handlers.ServeHTTP(p, r)
	if p.status == http.StatusUnauthorized { // before he has the answer: of who has gone the parent takes no offence
		g.server.counts.unauthenticated.Add(1)
		g.server.offences.unauthenticated(r, c)
	}
	p.flush()
}

// crowding is how long a request waits for room before those that have it are hurried.
const crowding = 200 * time.Millisecond

type courseKey struct{}

// context is for http.Server.ConnContext.
func (s *server) context(ctx context.Context, top net.Conn) context.Context {
	if c := s.watch.of(idOf(top)); c != nil {
		ctx = context.WithValue(ctx, courseKey{}, c)
	}
	return withPeer(ctx, top)
}

// turned is for http.Server.ConnState.
func (s *server) turned(top net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.watch.made(idOf(top), top, top)
	case http.StateIdle:
		if h, ok := top.(*http1Conn); ok {
			h.rest()
		}
		if raw := connOf(top); raw != nil {
			raw.relax()
		}
		if c := s.watch.of(idOf(top)); c != nil {
			s.watch.enter(c, ipc.Resting)
		}
	}
}

// http1Key is where the context of a request has its http1Conn.
type http1Key struct{}

// announced tells the connection of a request that its handler is called.
func announced(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(http1Key{}).(*http1Conn); ok {
			c.begin()
		}
		h.ServeHTTP(w, r)
	})
}

// idOf is the number that the parent gave to the connection below c; 0 when it gave none.
func idOf(c net.Conn) uint64 {
	if raw := connOf(c); raw != nil {
		return raw.id
	}
	return 0
}

// connOf is what the parent handed over, below c.
func connOf(c net.Conn) *conn {
	for {
		switch is := c.(type) {
		case *conn:
			return is
		case interface{ NetConn() net.Conn }:
			c = is.NetConn()
		default:
			return nil
		}
	}
}

// yield ends a connection for whose slot somebody waits.
func (s *server) yield(id uint64) { s.watch.yield(id) }

// retire lets the connections that are held end by themselves: each answer asks for that.
func (s *server) retire() {
	s.retired.Store(true)
	go func() {
		s.held.Wait()
		s.exit <- 0
	}()
}
