package privsep

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
)

// hand gives an accepted connection, whose slot is taken, to a worker and closes the
// parent's copy: a copy kept here would keep the client from seeing the end. When no
// worker takes it in time it is closed, and its slot is free again.
func (p *pool) hand(fd int, l *listener, peer unix.Sockaddr) {
	defer unix.Close(fd)
	c, err := l.facts(fd, peer)
	if err != nil {
		p.log.Warn("connection is closed", "listener", l.name, "error", err)
		p.slots.free(1)
		return
	}
	deadline := time.Now().Add(p.config.HandLimit)
	for !p.give(&c, fd) {
		if p.isDraining() || time.Now().After(deadline) {
			p.log.Warn("connection is closed: no worker takes it", "listener", l.name, "peer", c.Addr)
			p.slots.free(1)
			return
		}
		time.Sleep(5 * time.Millisecond) // every channel is full: hundreds wait before this one
	}
}

// give offers the connection to the workers, the one with the fewest first, those that
// owe an answer last, and waits while none is ready. It reports false when every
// channel is full, or the pool drains.
func (p *pool) give(c *ipc.Connection, fd int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if p.draining {
			return false
		}
		ready := slices.SortedFunc(maps.Values(p.workers), byLoad)
		ready = slices.DeleteFunc(ready, func(w *worker) bool { return !w.ready || w.ending != "" })
		for _, w := range ready {
			if p.offer(w, c, fd) {
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

// offer sends the connection to w, without waiting. It is on w's list before it is
// sent, because the worker may say Done at once; p.mu is held all the while.
func (p *pool) offer(w *worker, c *ipc.Connection, fd int) bool {
	p.id++
	c.ID = p.id
	if err := w.channel.TrySend(c, fd); err != nil {
		return false // full, or dying: its listener deals with that
	}
	w.held[c.ID] = struct{}{}
	w.handed++
	return true
}
