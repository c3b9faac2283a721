package client

import (
	"context"
	"slices"
	"sync"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/rpc/message"
)

// Limits on the connections to the controllers for long answers.
const (
	// maxLongRequests is the maximum number of long answers that are requested
	// at the same time. A controller writes one answer after another, and needs
	// a tenth of a second for each long one. A hundred concurrent requests would
	// block all other clients for ten seconds.
	maxLongRequests = 4

	// maxLongConns also includes the answers that stay on their connections
	// because memory is short. Each of them keeps a thread of the controller
	// busy for as long as its client reads.
	maxLongConns = 12

	maxOwnerConns = maxLongConns / 2 // of one credential
)

// A gate limits the connections for long answers. A request enters the gate
// before it connects, and leaves the gate when its answer has been read from
// the connection. The next request that the gate admits is one whose credential
// has the fewest connections. So a client that requests a hundred lists delays
// other clients by at most one list.
type gate struct {
	mu        sync.Mutex
	byOwner   map[owner]int
	requested int // connections whose answer has not begun
	conns     int
	queue     []*place
}

// A place is the place of one request in the gate. A nil *place stands for a
// request that needs none.
type place struct {
	gate     *gate
	owner    owner
	streams  bool          // the answer has begun, and stays on the connection
	admitted chan struct{} // closed when the request is admitted
	left     bool
}

// enter waits until the gate admits a request with the owner's credential. If
// ctx ends first, enter returns errs.Unavailable. The argument streams says that
// the request has been sent already, and its answer has begun.
func (g *gate) enter(ctx context.Context, owner owner, streams bool) (*place, error) {
	p := &place{gate: g, owner: owner, streams: streams, admitted: make(chan struct{})}
	g.mu.Lock()
	g.queue = append(g.queue, p)
	g.admit()
	g.mu.Unlock()
	select {
	case <-p.admitted:
		return p, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.queue, p)
	if i < 0 {
		return p, nil // the request was admitted just now
	}
	g.queue = slices.Delete(g.queue, i, i+1)
	return nil, errs.Wrap(context.Cause(ctx), errs.Unavailable, "server busy: limit of concurrent long answers reached")
}

// admit admits waiting requests up to the limits. The caller holds the lock.
func (g *gate) admit() {
	if g.byOwner == nil {
		g.byOwner = map[owner]int{}
	}
	for g.conns < maxLongConns {
		var next *place
		for _, p := range g.queue {
			n := g.byOwner[p.owner]
			if n < maxOwnerConns && (p.streams || g.requested < maxLongRequests) && (next == nil || n < g.byOwner[next.owner]) {
				next = p
			}
		}
		if next == nil {
			return
		}
		i := slices.Index(g.queue, next)
		g.queue = slices.Delete(g.queue, i, i+1)
		g.conns++
		g.byOwner[next.owner]++
		if !next.streams {
			g.requested++
		}
		close(next.admitted)
	}
}

// stream records that the answer has begun, and stays on the connection.
func (p *place) stream() {
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if !p.streams {
		p.streams = true
		g.requested--
		g.admit()
	}
}

// leave leaves the gate. It may be called twice.
func (p *place) leave() {
	if p == nil {
		return
	}
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.left {
		return
	}
	p.left = true
	g.conns--
	if !p.streams {
		g.requested--
	}
	if g.byOwner[p.owner]--; g.byOwner[p.owner] == 0 {
		delete(g.byOwner, p.owner)
	}
	g.admit()
}

// admitRequest waits until the gate admits r, if the answer to r may be long.
// Waiting takes at most half of the remaining time, so that there is time for
// the answer. The caller must leave the place when it has read the answer from
// the connection.
func (c *Client) admitRequest(ctx context.Context, owner owner, r request) (*place, error) {
	if !r.repeatable || !c.long.expects(r, c.now()) {
		return nil, nil // r need not pass the gate
	}
	ctx, cancel := splitDeadline(ctx, true)
	defer cancel()
	return c.gate.enter(ctx, owner, false)
}

// longAnswers records which types of requests had long answers.
type longAnswers struct {
	mu   sync.Mutex
	last map[message.Type]time.Time // time of the last long answer; zero if all were short
}

// longAnswerTTL is the time for which a long answer makes expects expect more
// long answers to requests of the same type. Short answers do not shorten this
// time, because they may have special reasons: perhaps the list has not changed,
// or the user may see only their own jobs.
const longAnswerTTL = 10 * time.Minute

// expects reports whether the answer to r is likely to be long. If r requests a
// list for the first time, it returns true.
func (l *longAnswers) expects(r request, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, known := l.last[r.kind]
	return !known && r.list || now.Sub(last) < longAnswerTTL
}

// record records that an answer to a request of type t had n bytes after its
// first piece.
func (l *longAnswers) record(t message.Type, n int, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = map[message.Type]time.Time{}
	}
	if n > maxShort {
		l.last[t] = now
	} else if _, known := l.last[t]; !known {
		l.last[t] = time.Time{}
	}
}
