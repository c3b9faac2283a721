package server

import (
	"log/slog"

	"schedrestd/internal/errs"
	"schedrestd/internal/semaphore"
)

// pool counts and limits the connections of one listener. Each listener has its
// own pool, so that the UNIX socket stays usable when clients fill the TCP
// port.
//
// When a pool is full, the server closes one connection to make room. It
// chooses a connection that waits for its client to send a credential, the rest
// of a request, or the next request. So silent clients can't exclude other
// clients, however often they connect. The server never closes a connection to
// make room while it is answering a request on that connection. Server.mu
// guards the fields.
type pool struct {
	row      semaphore.Row // its share is checked when a credential has been verified
	conns    *connQueue    // those of all but Supers
	supers   *connQueue
	reserved int           // additional connections for a Super
	closing  int           // connections that are being closed, and no longer in the queues
	retry    chan struct{} // receives a value when a waiting connection should try again
}

// A connQueue counts connections by their source. The items are those that wait for
// their clients, which can be closed.
type connQueue = semaphore.Queue[source, *conn]

func newPool(row semaphore.Row) *pool {
	return &pool{row: row, conns: semaphore.NewQueue[source, *conn](row, nil), supers: semaphore.NewQueue[source, *conn](row, nil), retry: make(chan struct{}, 1)}
}

// active returns the number of connections, except those being closed.
func (p *pool) active() int { return p.conns.Used() + p.supers.Used() }

// maxClosing is the maximum number of connections that are being closed.
// Closing may take time: see package fdpass.
const maxClosing = 64

// waitForSlot waits until there is room for c, and reports whether c may stay.
// If all connections to a UNIX socket are busy with requests, only a Super (see
// Server.Super) may wait. Other clients are refused immediately, because a
// Super must not have to wait behind them.
func (s *Server) waitForSlot(c *conn) bool {
	for {
		s.mu.Lock()
		if s.closing {
			s.mu.Unlock()
			return false
		}
		admitted := s.ensureCapacityLocked(c)
		if admitted {
			c.countLocked()
			s.conns[c] = struct{}{}
			s.wg.Add(1)
		}
		mayWait := !admitted && (!c.local || s.isSuperLocked(c) || c.pool.closing >= maxClosing)
		s.mu.Unlock()
		if admitted {
			return true
		}
		if !mayWait {
			c.logLimited(slog.LevelWarn, "connection refused", "error", "too many concurrent requests")
			return false
		}
		select {
		case <-c.pool.retry:
		case <-s.ctx.Done():
			return false
		}
	}
}

// crowded reports whether at least half of the connection slots of p are in
// use.
func (s *Server) crowded(p *pool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.active() >= p.row.Total/2
}

// ensureCapacityLocked reports whether there is room for c. To make room, it may
// end another connection: of the source with the most, so that a client that
// connects often loses its own, the one that has waited longest for its client.
// Those of Supers come last.
func (s *Server) ensureCapacityLocked(c *conn) bool {
	p := c.pool
	limit := p.row.Total
	if s.isSuperLocked(c) {
		limit += p.reserved
	}
	switch {
	case p.closing >= maxClosing:
		return false
	case p.active() < limit:
		return true
	}
	victim, ok := p.conns.Most()
	if !ok {
		victim, ok = p.supers.Most()
	}
	if ok {
		victim.evictLocked()
	}
	return ok
}

// assignUser counts c as a connection of its credential's user. If that user
// now has too many connections, assignUser ends the one that has been silent
// longest. If all the others are busy, assignUser returns an error.
func (s *Server) assignUser(c *conn, id Identity) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.isEvicted {
		return nil // it ends soon
	}
	c.uncountLocked()
	c.source = source{user: true, uid: id.UID}
	c.countLocked()
	if s.Super(id.UID) || c.pool.conns.Held(c.source) <= c.pool.row.Share {
		return nil
	}
	if victim, ok := c.pool.conns.First(c.source); ok && victim != c {
		victim.evictLocked()
		return nil
	}
	return errs.New(errs.TooMany, "too many concurrent requests of this user").
		WithHint("at most %d are answered concurrently; wait for an answer before sending the next request", c.pool.row.Share)
}

// isSuperLocked reports whether the user of c is a Super.
func (s *Server) isSuperLocked(c *conn) bool { return c.source.user && s.Super(c.source.uid) }

// countLocked begins to count c, which waits for its client.
func (c *conn) countLocked() {
	c.counts = c.pool.conns
	if c.server.isSuperLocked(c) {
		c.counts = c.pool.supers
	}
	c.counts.Hold(c.source, 1)
	c.counts.Push(c.source, c)
}

func (c *conn) uncountLocked() {
	c.counts.Remove(c.source, c)
	c.counts.Hold(c.source, -1)
}

// evictLocked ends c and counts it as closing.
func (c *conn) evictLocked() {
	c.uncountLocked()
	c.isEvicted = true
	c.pool.closing++
	c.interruptLocked()
}

// release closes c and stops counting it.
func (s *Server) release(c *conn) {
	c.nc.Close()
	s.mu.Lock()
	delete(s.conns, c)
	if c.isEvicted {
		c.pool.closing--
	} else {
		c.uncountLocked()
	}
	s.mu.Unlock()
	c.pool.signal()
	s.wg.Done()
}

// signal wakes a connection that waits for room.
func (p *pool) signal() {
	select {
	case p.retry <- struct{}{}:
	default:
	}
}
