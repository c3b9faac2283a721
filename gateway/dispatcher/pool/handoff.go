package pool

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"schedrestd/internal/fdpass"
)

// Submit gives c to a worker, or puts it into the queue.
func (p *Pool) Submit(c *Connection) {
	switch {
	case p.IsLeaving():
		p.Slots.Drop(c, Unavailable, Stopping)
		return
	case p.backingOff:
		p.Slots.Drop(c, Unavailable, "the last start of its worker failed")
		return
	}
	p.lastUsed = time.Now()
	if len(p.waiting) > 0 || !p.tryAssign(c) {
		p.enqueue(c) // behind connections that arrived earlier
	}
}

// enqueue puts c into the queue for a worker. If no worker takes c within
// p.WaitLimit, c is turned away. In that case, a pool with SingleUse also ends.
func (p *Pool) enqueue(c *Connection) {
	p.waiting.Add(p.Loop, c, p.WaitLimit, func(c *Connection) {
		p.Slots.Drop(c, Unavailable, fmt.Sprintf("no worker accepted it within %s", p.WaitLimit))
		if p.SingleUse {
			p.drain()
		}
		p.askToFinish()
	})
	vacant := p.vacant
	p.vacant = nil
	for _, at := range vacant {
		p.fill(at)
	}
}

// serveWaiting gives waiting connections to workers, in order. It stops at the
// first connection that no worker can take.
func (p *Pool) serveWaiting() {
	p.waiting.takeWhile(p.tryAssign)
	p.askToFinish()
}

// tryAssign gives c to a ready worker. It prefers workers that have answered
// their Ping and, among these, the one with the fewest connections. It returns
// false if no worker can take c now. It also returns false if a service that
// workers need has exited and the next generation is being built.
func (p *Pool) tryAssign(c *Connection) bool {
	if p.gen.Replacing && !p.SingleUse {
		return false
	}
	ready := slices.DeleteFunc(slices.Collect(maps.Values(p.workers)), func(w *worker) bool { return !w.usable() })
	// A worker that sends ConnectionDone for connections but still uses them
	// always appears to have the fewest connections. As long as the other
	// workers have capacity, such a worker gets at most twice as many
	// connections as each of them.
	maxShare := 2 / float64(len(ready)+1)
	overShare := func(w *worker) int {
		if w.share > maxShare {
			return 1
		}
		return 0
	}
	slices.SortFunc(ready, func(a, b *worker) int {
		return cmp.Or(
			cmp.Compare(a.pingOverdue(), b.pingOverdue()),
			cmp.Compare(max(0, a.load()), max(0, b.load())),
			cmp.Compare(overShare(a), overShare(b)),
			cmp.Compare(a.load(), b.load()),
			cmp.Compare(a.assigned, b.assigned),
		)
	})
	for _, w := range ready {
		if p.offer(w, c) {
			for _, other := range ready {
				other.share -= other.share / shareWindow
			}
			w.share += 1. / shareWindow
			return true
		}
	}
	return false
}

// shareWindow is the approximate number of recent connections that determine a
// worker's share.
const shareWindow = 32

// offer tries to send c to w, without waiting. Each attempt gives c a new
// number, which is unique among all pools. So a message about an earlier
// attempt can't be mistaken for one about this attempt.
func (p *Pool) offer(w *worker, c *Connection) bool {
	p.Slots.lastNumber++
	c.ID = p.Slots.lastNumber
	p.gen.Audit.ConnAssigned(w.Number, &c.Connection)
	if err := w.Channel.TrySend(&c.Connection, c.FD); err != nil {
		p.gen.Audit.ConnClosed(c.ID)
		return false // the channel is full, or the worker is exiting (handled in receive)
	}
	c.tries++
	c.holder = w.Channel
	w.held[c.ID] = c
	w.assigned++
	if p.assigned++; p.assigned == p.RotateAfter && p.OnRotate != nil {
		p.OnRotate()
	}
	return true
}

// Refuse makes a worker answer the client of a connection that is turned away.
// It passes the connection to the worker with the fewest connections. If that
// worker can't take the connection immediately, the client gets no answer. The
// worker does not learn the connection's number, so it can't report anything
// about the connection.
func (p *Pool) Refuse(c *Connection, status int, retryAfter time.Duration) {
	var best *worker
	for _, w := range p.workers {
		if w.usable() && w.pingOverdue() == 0 && (best == nil || w.load() < best.load()) {
			best = w
		}
	}
	if best == nil {
		return
	}
	m := c.Connection
	m.ID, m.RefuseStatus, m.RetryAfter = 0, uint16(status), seconds(retryAfter)
	_ = best.Channel.TrySend(&m, c.FD)
}

// reclaimConns takes back the connections of a worker that has exited.
// Connections that the worker had taken are lost. Those still in its channel go
// to the end of the queue, unless the pool accepts no more connections.
//
// The number of attempts is limited, because a flaw in the code that receives
// connections could let a connection crash each worker that it is sent to. In a
// pool of n workers, n workers may exit for other reasons while the connection
// is in their channels. But if the next worker that gets the connection also
// exits, the connection is the likely cause, and no other worker gets it.
func (p *Pool) reclaimConns(w *worker) (lost, requeued int) {
	held := slices.SortedFunc(maps.Values(w.held), func(a, b *Connection) int { return cmp.Compare(a.ID, b.ID) })
	clear(w.held)
	for _, c := range held {
		if c.FD >= 0 && c.tries <= p.Workers && !p.IsLeaving() {
			p.enqueue(c)
			requeued++
			continue
		}
		if c.FD >= 0 {
			fdpass.Close(c.FD)
		}
		p.Slots.Release(&c.Conn)
		lost++
	}
	p.lastUsed = time.Now()
	p.serveWaiting()
	return lost, requeued
}
