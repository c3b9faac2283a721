package server

import (
	"log/slog"
	"time"

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
	row      semaphore.Row // the share limits connections with the credentials of one user
	reserved int           // additional connections for a Super
	active   int           // connections, except those being closed
	closing  int           // connections that are being closed
	retry    chan struct{} // receives a value when a waiting connection should try again
}

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
			c.waitingSince = time.Now()
			c.pool.active++
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
	return p.active >= p.row.Total/2
}

// ensureCapacityLocked reports whether there is room for c. To make room, it
// may end another connection.
func (s *Server) ensureCapacityLocked(c *conn) bool {
	limit := c.pool.row.Total
	if s.isSuperLocked(c) {
		limit += c.pool.reserved
	}
	if c.pool.closing >= maxClosing {
		return false
	}
	return c.pool.active < limit || s.evictLocked(s.longestSilentLocked(c.pool, func(*conn) bool { return true }))
}

// assignUser counts c as a connection of its credential's user. If that user
// now has too many connections, assignUser ends the one that has been silent
// longest. If all the others are busy, assignUser returns an error.
func (s *Server) assignUser(c *conn, id Identity) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.source, c.verified = source{user: true, uid: id.UID}, true
	if s.Super(id.UID) {
		return nil
	}
	n := 0
	sameUser := func(other *conn) bool { return other.verified && other.source == c.source }
	for other := range s.conns {
		if other.pool == c.pool && !other.isEvicted && sameUser(other) {
			n++
		}
	}
	if n <= c.pool.row.Share {
		return nil
	}
	if s.evictLocked(s.longestSilentLocked(c.pool, func(other *conn) bool { return other != c && sameUser(other) })) {
		return nil
	}
	return errs.New(errs.TooMany, "too many concurrent requests of this user").
		WithHint("at most %d are answered concurrently; wait for an answer before sending the next request", c.pool.row.Share)
}

// longestSilentLocked returns the connection of p that should be closed first,
// or nil. It considers only connections that wait for their client and for
// which the function eligible returns true. It compares them by these criteria,
// in this order:
//
//  1. Connections of a Super come last.
//  2. Connections of the user or machine with the most connections come first.
//     So a client that connects often loses its own connections.
//  3. The connection that has waited longest comes first.
func (s *Server) longestSilentLocked(p *pool, eligible func(*conn) bool) *conn {
	count := map[source]int{}
	for c := range s.conns {
		if c.pool == p && !c.isEvicted {
			count[c.source]++
		}
	}
	var first *conn
	before := func(a, b *conn) bool {
		if x, y := s.isSuperLocked(a), s.isSuperLocked(b); x != y {
			return y
		}
		if x, y := count[a.source], count[b.source]; x != y {
			return x > y
		}
		return a.waitingSince.Before(b.waitingSince)
	}
	for c := range s.conns {
		if c.pool == p && !c.isEvicted && !c.busy && eligible(c) && (first == nil || before(c, first)) {
			first = c
		}
	}
	return first
}

// isSuperLocked reports whether the user of c is a Super.
func (s *Server) isSuperLocked(c *conn) bool { return c.source.user && s.Super(c.source.uid) }

// evictLocked ends c and counts it as closing. If c is nil, it does nothing and
// returns false.
func (s *Server) evictLocked(c *conn) bool {
	if c == nil {
		return false
	}
	c.isEvicted = true
	c.pool.active--
	c.pool.closing++
	c.interruptLocked()
	return true
}

// release closes c and stops counting it.
func (s *Server) release(c *conn) {
	c.nc.Close()
	s.mu.Lock()
	delete(s.conns, c)
	if c.isEvicted {
		c.pool.closing--
	} else {
		c.pool.active--
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
