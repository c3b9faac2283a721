package privsep

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"schedrestd/ipc"
	"schedrestd/privsep/admission"
	"schedrestd/rights"
)

// connection is one that was accepted.
type connection struct {
	ipc.Connection
	admission.Conn // its state is guarded by mu of slots

	fd     int         // the parent's copy; -1 once the worker has said Taken
	tries  int         // workers it was given to
	late   *time.Timer // ends its time in the queue of its pool
	worker *worker     // that has it
}

// peer is who is at the other end, for the log.
func (c *connection) peer() string {
	if c.Network == ipc.Unix {
		return fmt.Sprintf("uid %d", c.UID)
	}
	return c.Addr
}

// mostTries is how many workers a connection is given to. Nobody has read of it, so it
// should harm none; but what kills two in a row is not given to a third.
const mostTries = 2

// take gives c to a worker now, or puts it into the queue. It never waits. It reports false when
// the pool is retired, and c is another one's to serve.
func (p *pool) take(c *connection) bool {
	p.mu.Lock()
	switch {
	case p.draining:
		p.mu.Unlock()
		p.slots.drop(c, statusUnavailable, stopping)
		return true
	case p.retired:
		p.mu.Unlock()
		return false
	case p.barren:
		p.mu.Unlock()
		p.slots.drop(c, statusUnavailable, "its worker could not be started a moment ago")
		return true
	}
	p.used = time.Now()
	if len(p.waiting) > 0 || !p.give(c) {
		p.enqueue(c) // behind those that came before
	}
	p.mu.Unlock()
	return true
}

// enqueue gives c its time to wait; p.mu is held.
func (p *pool) enqueue(c *connection) {
	p.waiting = append(p.waiting, c)
	c.late = time.AfterFunc(p.config.HandLimit, func() { p.expire(c) })
	select {
	case p.demand <- struct{}{}:
	default:
	}
}

// dequeue gives out what waits, in order, as far as the workers take it; p.mu is held. It
// is called whenever that may have changed: a connection came, a worker got ready, or
// took one out of its channel.
func (p *pool) dequeue() {
	for len(p.waiting) > 0 && p.give(p.waiting[0]) {
		p.waiting[0].late.Stop()
		p.waiting[0] = nil
		p.waiting = p.waiting[1:]
	}
}

// serveWaiting gives out what waits.
func (p *pool) serveWaiting() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dequeue()
}

// expire drops c if it still waits. A pool that was made for it has nothing to wait for any more: its
// worker, ready too late, would be there for good.
func (p *pool) expire(c *connection) {
	p.mu.Lock()
	i := slices.Index(p.waiting, c)
	if i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
	p.mu.Unlock()
	if i < 0 {
		return
	}
	p.slots.drop(c, statusUnavailable, fmt.Sprintf("no worker took it within %s", p.config.HandLimit))
	if p.once {
		p.drain()
	}
}

// give offers c to the workers that are ready, the one with the fewest first, those
// that owe an answer last. It reports false when none can take it now, or a service that they
// need has exited and the next generation is about to be there; p.mu is held.
func (p *pool) give(c *connection) bool {
	if p.gen.replacing.Load() && !p.once {
		return false
	}
	ready := slices.DeleteFunc(slices.Collect(maps.Values(p.workers)), func(w *worker) bool { return !w.ready || w.Ending != "" })
	// One that says Done of what it goes on using has the fewest always. It gets twice the share of the others at the most, as long as they have room.
	most := 2 / float64(len(ready)+1)
	greedy := func(w *worker) int {
		if w.share > most {
			return 1
		}
		return 0
	}
	slices.SortFunc(ready, func(a, b *worker) int {
		return cmp.Or(
			cmp.Compare(owing(a), owing(b)),
			cmp.Compare(max(0, load(a)), max(0, load(b))),
			cmp.Compare(greedy(a), greedy(b)),
			cmp.Compare(load(a), load(b)),
			cmp.Compare(a.handed, b.handed),
		)
	})
	for _, w := range ready {
		if p.offer(w, c) {
			for _, other := range ready {
				other.share -= other.share / sharedOver
			}
			w.share += 1. / sharedOver
			return true
		}
	}
	return false
}

// refuse passes a connection that is not served to the worker that has the fewest, for
// an answer. If no worker takes it at once, there is none. The worker is trusted with
// no more than with those that it serves, and it is not told their numbers.
func (p *pool) refuse(c *connection, status int, after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var best *worker
	for _, w := range p.workers {
		if w.ready && w.Ending == "" && owing(w) == 0 && (best == nil || load(w) < load(best)) {
			best = w
		}
	}
	if best == nil {
		return
	}
	m := c.Connection
	m.ID, m.Refuse, m.RetryAfter = 0, uint16(status), seconds(after)
	_ = best.Channel.TrySend(&m, c.fd)
}

// sharedOver is over how many connections shares are counted, roughly.
const sharedOver = 32

// load is how many connections w has beyond the requests that it may answer; below zero it has room.
func load(w *worker) int { return len(w.held) - w.requests }

// owing is 1 for a worker that has not answered its Ping for a moment.
func owing(w *worker) int {
	if !w.silence.Since().IsZero() && time.Since(w.silence.Since()) > 100*time.Millisecond {
		return 1
	}
	return 0
}

// offer sends c to w, without waiting; p.mu is held, so that w's answer finds c on its
// list. Each time it has another number, which no other pool has either: an answer about a try that failed can't be
// taken for one about the next.
func (p *pool) offer(w *worker, c *connection) bool {
	c.ID = p.slots.number.Add(1)
	p.gen.audit.Given(w.Number, &c.Connection)
	if err := w.Channel.TrySend(&c.Connection, c.fd); err != nil {
		p.gen.audit.Gone(c.ID)
		return false // full, or dying: serveChannel deals with that
	}
	c.tries++
	c.worker = w
	w.held[c.ID] = c
	w.handed++
	if p.handed++; p.handed == p.config.Wear && p.worn != nil {
		p.worn()
	}
	return true
}

// taken closes the parent's copy: were it kept, the client would not see the end that
// the worker makes. The channel has room for another one now.
func (p *pool) taken(w *worker, id uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := w.held[id]
	if !ok || c.fd < 0 {
		return fmt.Errorf("it said Taken of connection %d, which it was not given", id)
	}
	rights.Close(c.fd)
	c.fd = -1
	p.slots.taken(c)
	p.dequeue()
	return nil
}

// release frees the slot of a connection, which this worker must hold: a captured one
// could else free slots for ever and take the limit away.
func (p *pool) release(w *worker, id uint64) error {
	p.mu.Lock()
	c, ok := w.held[id]
	if !ok || c.fd >= 0 {
		p.mu.Unlock()
		return errNotHeld("Done", id)
	}
	delete(w.held, id)
	p.gen.audit.Gone(id)
	w.finished++
	p.used = time.Now()
	p.slots.end(c)
	p.mu.Unlock()
	if p.once {
		p.drain() // its worker has done what it was made for
	}
	p.rest()
	return nil
}

// progress notes how far a connection has come, which this worker must hold: else a captured
// one could have others' connections ended. It says so of changes only, and not without
// end: the parent has to listen.
func (p *pool) progress(w *worker, m *ipc.Progress) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := w.held[m.ID]
	if !ok || c.fd >= 0 {
		return errNotHeld("Progress", m.ID)
	}
	if !p.slots.report(c, m.Stage) {
		return fmt.Errorf("it said twice that connection %d is %s", m.ID, m.Stage)
	}
	if !w.reports.Take(time.Now(), 1) {
		return errTooOften("Progress")
	}
	return nil
}

func errNotHeld(what string, id uint64) error {
	return fmt.Errorf("it said %s of connection %d, which it does not hold", what, id)
}

func errTooOften(what string) error { return fmt.Errorf("it said %s too often", what) }

// suspects returns the connections that w had taken; p.mu is held. One of their clients
// may be why it crashed.
func (p *pool) suspects(w *worker) (list []*admission.Conn) {
	for _, c := range w.held {
		if c.fd < 0 {
			list = append(list, &c.Conn)
		}
	}
	return list
}

// orphans takes from a dead worker what it held; p.mu is held. What it had taken is
// lost with it. What still waited in its channel goes to the end of the queue,
// unless that was tried or the pool takes nothing any more.
func (p *pool) orphans(w *worker) (lost, again int) {
	held := slices.SortedFunc(maps.Values(w.held), func(a, b *connection) int { return cmp.Compare(a.ID, b.ID) })
	clear(w.held)
	for _, c := range held {
		if c.fd >= 0 && c.tries < mostTries && !p.draining && !p.retired {
			p.enqueue(c)
			again++
			continue
		}
		if c.fd >= 0 {
			rights.Close(c.fd)
		}
		p.slots.end(c)
		lost++
	}
	p.used = time.Now()
	p.dequeue()
	return lost, again
}
