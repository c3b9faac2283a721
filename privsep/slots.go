package privsep

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"schedrestd/privsep/relay"
	"schedrestd/rights"
)

// slots counts the connections that are being handled, over all pools, and decides which
// of those that wait is next, and which give way for it (giving).
type slots struct {
	log     *slog.Logger
	patient time.Duration     // for how long a connection that has too many of its source before it waits
	admit   func(*connection) // serves one that waited, and has a slot now
	silent  func()            // looks for workers that do not answer; see pool.excuse

	unserved  *tally // connections that were closed so
	counts    *counters
	quotas    relay.Quotas  // of what workers log
	number    atomic.Uint64 // of the last connection
	penalties *penalties

	mu sync.Mutex // guards what follows, and what a connection has of it; the last lock that is taken
	shares
	giving
	watching bool          // tick is on its way
	next     []*connection // that have been given a slot and are to be admitted, in this order
	closed   bool
}

// mostWaiting bounds the connections that are accepted and wait, as net.core.somaxconn
// bounds those in the kernel's queue. They are accepted because the kernel does not say
// whose connections are in its queue, and one client could fill that.
const mostWaiting = 4096

func newSlots(c Config) *slots {
	s := &slots{log: c.Log, patient: c.HandLimit, unserved: newTally(), counts: new(counters), penalties: newPenalties(c.Setup.Admission, c.Log),
		silent: func() {}, shares: newShares(c.Connections, c.PerSource, c.waiting())}
	s.round = 1
	return s
}

// enter gives c a slot, has it wait, or turns it away. It reports whether c has a slot.
func (s *slots) enter(c *connection) bool {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.turnAway(c, statusUnavailable, stopping)
		return false
	}
	what, evicted := s.shares.enter(c)
	if what == parked {
		if s.isFull(c) {
			c.late = time.AfterFunc(s.patient, func() { s.expire(c) })
		}
		s.press()
		if s.wantsOwn(c) {
			s.pressSource(c)
		}
		if !s.watching {
			s.watching = true
			time.AfterFunc(patient, s.tick)
		}
	}
	s.mu.Unlock()
	switch what {
	case parked:
		s.counts.parked.add(1)
	case refused:
		evicted = c
	}
	if evicted != nil {
		if evicted.late != nil {
			evicted.late.Stop()
		}
		s.turnAway(evicted, statusUnavailable, "too many connections of its source wait")
	}
	return what == entered
}

// expire turns away a connection that waited too long for others of its source.
func (s *slots) expire(c *connection) {
	s.mu.Lock()
	there := s.unpark(c)
	s.mu.Unlock()
	if there {
		s.turnAway(c, statusUnavailable, fmt.Sprintf("its source has %d connections, and none ended within %s", s.limit, s.patient))
	}
}

// patient is how long a connection waits for a slot before those that are being answered are asked to give way.
const patient = 200 * time.Millisecond

// tick presses others for as long as connections wait.
func (s *slots) tick() {
	s.silent()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watching = s.total > 0; s.watching {
		s.insist()
		time.AfterFunc(patient, s.tick)
	}
}

// hesitates reports whether no slot is free, as far as is known, and no connection waits.
func (s *slots) hesitates() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free <= 0 && s.total == 0
}

// end takes back what c holds, and admits the connections that are next.
func (s *slots) end(c *connection) {
	s.mu.Lock()
	s.forget(c)
	s.leave(c)
	s.advance()
	s.mu.Unlock()
}

// excuse gives the slots of list to others.
func (s *slots) excuse(list []*connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range list {
		s.shares.excuse(c)
	}
	s.advance()
}

// advance admits those that can have a slot now; s.mu is held. It does so by a goroutine of
// its own, because the caller may hold the lock of its pool.
func (s *slots) advance() {
	idle := len(s.next) == 0
	for c := s.pick(); c != nil; c = s.pick() {
		if c.late != nil {
			c.late.Stop()
		}
		s.next = append(s.next, c)
	}
	if idle && len(s.next) > 0 {
		go s.admitNext()
	}
}

func (s *slots) admitNext() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.next) > 0 {
		c := s.next[0]
		s.mu.Unlock()
		s.admit(c)
		s.mu.Lock()
		s.next = s.next[1:]
	}
}

// close turns away the connections that wait, and those that come.
func (s *slots) close() {
	s.mu.Lock()
	s.closed = true
	var list []*connection
	for _, queue := range s.waiting {
		list = append(list, queue...)
	}
	clear(s.waiting)
	s.total = 0
	s.mu.Unlock()
	for _, c := range list {
		if c.late != nil {
			c.late.Stop()
		}
		s.turnAway(c, statusUnavailable, stopping)
	}
}

// stopping is why no connection is served any more.
const stopping = "the gateway stops"

// drop turns away a connection that nobody serves, and frees its slot.
func (s *slots) drop(c *connection, status int, why string) {
	s.turnAway(c, status, why)
	s.end(c)
}

// turnAway closes a connection that has no slot, with an answer where one can be given, and says
// so.
func (s *slots) turnAway(c *connection, status int, why string) {
	s.counts.turnedAway(status)
	switch {
	case status == 0 || c.TLS: // a client of TLS would take it for garbage
		rights.Close(c.fd)
	case status == statusTooMany:
		refuseWith(c.fd, tooMany(s.penalties.wait(c)))
	default:
		refuseWith(c.fd, answers[status])
	}
	if total, ok := s.unserved.add(); ok {
		s.log.Warn("connection is closed unserved", "listener", c.Listener, "peer", c.peer(), "because", why, "unserved_so_far", total)
	}
}
