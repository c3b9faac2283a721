package privsep

import (
	"log/slog"
	"schedrestd/rights"
	"sync"
	"sync/atomic"
	"time"
)

// slots counts the connections that are being handled, over all pools. The parent accepts
// only with a slot in hand; who finds none waits in the kernel's queue and loses nothing,
// and others give way to him (giving).
type slots struct {
	taken   chan struct{}
	log     *slog.Logger
	sources *sources
	admit   func(*connection) // serves one that was parked, and has a slot now

	pressed atomic.Bool // somebody had to wait since calm

	unserved  *tally // connections that were closed so
	counts    *counters
	quotas    quotas        // of what workers log
	number    atomic.Uint64 // of the last connection
	penalties *penalties

	mu sync.Mutex
	giving
}

func newSlots(c Config) *slots {
	s := &slots{taken: make(chan struct{}, c.Connections), log: c.Log, unserved: newTally(), counts: new(counters), penalties: newPenalties(c.Setup.Admission, c.Log)}
	s.sources = newSources(c, func(one *connection, why string) { s.turnAway(one, statusUnavailable, why) })
	return s
}

// patient is how long somebody waits for a slot before those that are busy are asked as well.
const patient = 200 * time.Millisecond

// take waits for a slot, and presses others for it. It reports false when quit closes first.
func (s *slots) take(quit <-chan struct{}) bool {
	select {
	case <-quit:
		return false
	default:
	}
	if s.try() || s.listen() {
		return true
	}
	s.want(1)
	defer s.want(-1)
	tick := time.NewTicker(patient)
	defer tick.Stop()
	for {
		select {
		case s.taken <- struct{}{}:
			return true
		case <-quit:
			return false
		case <-tick.C:
			s.insist()
		}
	}
}

// listen takes a slot that is free and not known to be: who accepts without a pause keeps the parent's one
// thread from hearing the workers, which have said Done. It gives up after two short waits, since the first
// may end before anybody was heard; and nobody waits so while others wait already.
func (s *slots) listen() bool {
	if s.pressed.Load() {
		return false
	}
	for range 2 {
		select {
		case s.taken <- struct{}{}:
			return true
		case <-time.After(time.Millisecond):
		}
	}
	return false
}

// try takes a slot if there is one.
func (s *slots) try() bool {
	select {
	case s.taken <- struct{}{}:
		return true
	default:
		return false
	}
}

// free gives a slot back. More than were taken would be a fault of the accounting.
func (s *slots) free() {
	select {
	case <-s.taken:
	default:
		panic("privsep: a slot was freed that nobody had")
	}
}

// end gives c's slot back, or to one of the same source that waits for c's place.
func (s *slots) end(c *connection) {
	s.mu.Lock()
	s.forget(c)
	s.mu.Unlock()
	if next := s.sources.leave(c); next != nil {
		go s.admit(next) // who calls may hold the lock of its pool
		return
	}
	s.free()
}

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
