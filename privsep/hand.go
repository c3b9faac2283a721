package privsep

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
)

// connection is one that was accepted and has a slot.
type connection struct {
	ipc.Connection
	fd    int // the parent's copy; -1 once the worker has said Taken
	tries int // workers it was given to
}

// mostTries is how many workers a connection is given to. Nobody has read of it, so it
// should harm none; but what kills two in a row is not given to a third.
const mostTries = 2

// admit asks the kernel about an accepted connection, whose slot is taken, and hands it over.
func (p *pool) admit(fd int, l *listener, peer unix.Sockaddr) {
	facts, err := l.facts(fd, peer)
	c := &connection{Connection: facts, fd: fd}
	if err != nil {
		p.drop(c, err.Error())
		return
	}
	p.hand(c)
}

// hand gives c to a worker. When none takes it in time it is closed.
func (p *pool) hand(c *connection) {
	deadline := time.Now().Add(p.config.HandLimit)
	for !p.give(c) {
		if p.isDraining() || time.Now().After(deadline) {
			p.drop(c, "no worker takes it")
			return
		}
		time.Sleep(5 * time.Millisecond) // every channel is full: hundreds wait before this one
	}
}

// drop closes a connection that nobody serves and frees its slot.
func (p *pool) drop(c *connection, why string) {
	unix.Close(c.fd)
	p.slots.free(1)
	p.log.Warn("connection is closed", "listener", c.Listener, "peer", c.Addr, "because", why)
}

// give offers c to the workers, the one with the fewest first, those that owe an answer
// last, and waits while none is ready. It reports false when every channel is full,
// or the pool drains.
func (p *pool) give(c *connection) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if p.draining {
			return false
		}
		ready := slices.SortedFunc(maps.Values(p.workers), byLoad)
		ready = slices.DeleteFunc(ready, func(w *worker) bool { return !w.ready || w.ending != "" })
		for _, w := range ready {
			if p.offer(w, c) {
				return true
			}
		}
		if len(ready) > 0 {
			return false
		}
		p.changed.Wait()
	}
}

// byLoad orders workers by how good it is to give them a connection.
func byLoad(a, b *worker) int {
	return cmp.Or(
		cmp.Compare(owing(a), owing(b)),
		cmp.Compare(len(a.held), len(b.held)),
		cmp.Compare(a.handed, b.handed),
	)
}

// owing is 1 for a worker that has not answered its Ping for a moment.
func owing(w *worker) int {
	if !w.waiting.IsZero() && time.Since(w.waiting) > 100*time.Millisecond {
		return 1
	}
	return 0
}

// offer sends c to w, without waiting; p.mu is held, so that w's answer finds c on its
// list. Each time it has another number: an answer about a try that failed can't be
// taken for one about the next.
func (p *pool) offer(w *worker, c *connection) bool {
	p.id++
	c.ID = p.id
	if err := w.channel.TrySend(&c.Connection, c.fd); err != nil {
		return false // full, or dying: its listener deals with that
	}
	c.tries++
	w.held[c.ID] = c
	w.handed++
	return true
}

// taken closes the parent's copy: were it kept, the client would not see the end that
// the worker makes.
func (p *pool) taken(w *worker, id uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := w.held[id]
	if !ok || c.fd < 0 {
		return fmt.Errorf("it said Taken of connection %d, which it was not given", id)
	}
	unix.Close(c.fd)
	c.fd = -1
	return nil
}

// release frees the slot of a connection, which this worker must hold: a captured one
// could else free slots for ever and take the limit away.
func (p *pool) release(w *worker, id uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := w.held[id]
	if !ok || c.fd >= 0 {
		return fmt.Errorf("it said Done of connection %d, which it does not hold", id)
	}
	delete(w.held, id)
	w.finished++
	p.slots.free(1)
	return nil
}

// orphans takes from a dead worker what it held; p.mu is held. What it had taken is
// lost with it. What still waited in its channel is to be handed again, unless that
// was tried or the pool drains.
func (p *pool) orphans(w *worker) (lost int, again []*connection) {
	for _, c := range w.held {
		if c.fd >= 0 && c.tries < mostTries && !p.draining {
			again = append(again, c)
			continue
		}
		if c.fd >= 0 {
			unix.Close(c.fd)
		}
		lost++
	}
	clear(w.held)
	p.slots.free(lost)
	return lost, again
}
