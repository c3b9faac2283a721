// Package admission decides which connections are served, which wait, and which
// are closed. It counts slots, divides them fairly among the sources of
// connections, and blocks sources that commit offences.
//
// The caller reports events with their times, and carries out the resulting
// Decisions. The package itself has no clock, lock, goroutine or descriptor.
// Its methods must not be called concurrently. While connections wait, the
// caller must call Tick every TickInterval.
//
// These rules apply to a connection that arrives, in this order:
//
//   - If the source of the connection is blocked for its offences, the connection
//     is refused (package penalty).
//   - A source may have every slot while no other source waits. But if
//     Config.PerSource is set, a source never has more slots than that.
//   - A connection that finds no free slot waits. At most Config.Waiting
//     connections wait: if there are more, the newest connection of the source
//     with the most waiting connections is refused. So a source can't keep other
//     sources out. If the newest connection of all were refused, a source with
//     4600 connections would make 142 of 147 connections of another one fail.
//   - A free slot goes to the waiting source that has the fewest slots. Sources
//     with equally many take turns.
//   - A connection that waits for a change, or for an accounting daemon, gives up
//     its slot until it goes on. At
//     most Config.Watching connections do, and half of them of one source. Further
//     ones keep their slots. A connection that goes on while no slot is free still
//     counts as one that waits, and is reclaimed as soon as it is at rest. So
//     connections that go on, all at once or again and again, take no slot from
//     others.
//   - To make room for a waiting connection, another one is reclaimed: its worker
//     is asked to close it soon (reclaim.go). This happens at once if the source
//     of the waiting connection has less than half of the slots, and otherwise
//     after TickInterval.
//
// Penalties and fair shares do not apply to exempt sources. PerSource does not
// apply to proxies, but it does apply to exempt sources.
package admission

import (
	"container/list"
	"time"

	"schedrestd/internal/penalty"
	"schedrestd/ipc/work"
)

// Config has the limits of a State.
type Config struct {
	Slots     int           // connections that are served concurrently
	PerSource int           // connections of one source that are served concurrently; 0: no such limit
	Waiting   int           // connections that may wait for a slot
	Watching  int           // connections that may give up their slots while they wait for a change
	WaitLimit time.Duration // how long a connection waits if its source already has PerSource connections
	Penalties penalty.Rules
}

// TickInterval is the time between two calls of Tick while connections wait.
// Some of the steps that free slots for waiting connections are taken only in
// Tick (see askForSlots).
const TickInterval = 200 * time.Millisecond

// Conn is one connection. The caller sets the exported fields before it calls
// Arrived. Only this package sets the other fields.
type Conn struct {
	Source Source
	Exempt bool // penalties and fair shares do not apply to its source
	Proxy  bool // it carries requests from many clients, so PerSource does not apply
	Left   bool // its client, a process on this machine, had left before its user could be found, so others of its source do not pay for it
	Ref    any  // for the caller's use

	holds   holding
	arrival uint64    // orders connections that had to wait
	expires time.Time // when to refuse it if it waits for other connections of its source to end; otherwise zero. Tick sets it

	stage        work.Stage // as the worker reports it; zero until a worker has the connection
	list         *list.List // reclaim.resting or reclaim.busy; nil until a worker has it
	elem         *list.Element
	asked        bool      // it was reclaimed since the last Tick, and its stage has not changed since
	firstAskedAt time.Time // when ReclaimAll reclaimed it for the first time
}

// IsCalling reports whether c waits for an accounting daemon, without a slot or
// with one that is lent to others.
func (c *Conn) IsCalling() bool { return c.stage == work.Calling && c.holds != slot }

// State holds the state of all connections. It is not safe for concurrent use.
type State struct {
	waitLimit time.Duration // Config.WaitLimit
	shutDown  bool
	*shares
	reclaim
	penalties
}

// New returns a State without connections.
func New(c Config) *State {
	return &State{waitLimit: c.WaitLimit, shares: newShares(c), penalties: newPenalties(c.Penalties)}
}

// Arrived reports a new connection. The State admits the connection, refuses
// it, or lets it wait.
func (s *State) Arrived(now time.Time, c *Conn) {
	if wait := s.BlockedFor(now, c); wait > 0 {
		s.decide(Decision{Action: Refuse, Conn: c, Reason: Blocked, Wait: wait})
		return
	}
	if s.shutDown {
		s.decide(Decision{Action: Refuse, Conn: c, Reason: ShutDown})
		return
	}
	s.queue.Push(c.Source, c)
	s.admitNext()
	if c.holds == slot {
		return
	}
	s.waited++
	c.arrival = s.waited
	if s.queue.Len() > s.maxWaiting {
		last := s.last()
		if s.refuse(last, TooManyWaiting); last == c {
			return
		}
	}
	s.askForSlots(false)
	s.askOwnSource(c)
}

// Taken reports that a worker serves c.
func (s *State) Taken(c *Conn) {
	c.stage = work.Answering // until its worker reports another stage
	s.move(c, &s.busy)
}

// Progress reports that c has reached the given stage. It returns false if the
// stage has not changed.
func (s *State) Progress(c *Conn, stage work.Stage) (changed bool) {
	if c.stage == stage {
		return false
	}
	c.stage = stage
	s.clearAsked(c)
	if needsNoSlot(stage) {
		s.beginWatch(c)
	} else {
		s.endWatch(c)
	}
	if isBusy(stage) {
		s.move(c, &s.busy)
	} else {
		s.move(c, &s.resting)
	}
	if stage == work.Answering {
		return true
	}
	if c.holds == watchPlace && !needsNoSlot(stage) {
		s.reclaimConn(c)
	}
	s.admitNext()
	s.askOwnSource(c)
	s.askForSlots(false)
	return true
}

// needsNoSlot reports whether a connection waits for something else than its
// client, so that it needs no slot.
func needsNoSlot(stage work.Stage) bool { return stage == work.Watching || stage == work.Calling }

// isBusy reports whether a connection can't be closed before its answer.
func isBusy(stage work.Stage) bool { return stage == work.Answering || stage == work.Calling }

// Release reports that the client or the worker has closed c, which was admitted.
func (s *State) Release(c *Conn) {
	s.clearAsked(c)
	s.move(c, nil)
	s.releaseSlot(c)
	s.admitNext()
}

// Unresponsive reports connections whose workers have not answered for a while.
// This can happen because, with become_user, users can stop their own workers.
// Without this, two users who did so kept a third waiting for 12 s.
// The slots of these connections are given to other connections. These
// connections stay open and still count against their sources. The number of
// slots that can be given away at the same time is limited to the total number
// of slots.
func (s *State) Unresponsive(conns []*Conn) {
	for _, c := range conns {
		if c.holds == slot && s.excused < s.size {
			s.excuse(c)
		}
	}
	s.admitNext()
}

// Responsive reports connections whose workers answer again. Their slots are no longer
// lent, so they can be reclaimed. Otherwise the gateway could serve twice as many
// connections as there are slots, until those of the workers ended.
func (s *State) Responsive(conns []*Conn) {
	for _, c := range conns {
		if c.holds == lentSlot {
			s.restore(c)
		}
	}
	s.admitNext()
}

// Lent returns the number of connections whose slots are lent.
func (s *State) Lent() int { return s.excused }

// Tick reports that TickInterval has passed while connections wait. It refuses
// those that have waited too long for other connections of their own source to end,
// which may never happen.
func (s *State) Tick(now time.Time) {
	for c := range s.queue.Items {
		switch {
		case !s.atLimit(c):
			c.expires = time.Time{}
		case c.expires.IsZero():
			c.expires = now.Add(s.waitLimit)
		case now.After(c.expires):
			s.refuse(c, TimedOut)
		}
	}
	if s.Waiting() {
		s.clearAllAsked()
		s.askForSlots(true)
	}
}

// Close refuses all connections that wait, and all that arrive later.
func (s *State) Close() {
	s.shutDown = true
	for c := range s.queue.Items {
		s.refuse(c, ShutDown)
	}
}

// Waiting reports whether connections are waiting. If so, the caller must call
// Tick.
func (s *State) Waiting() bool { return s.queue.Len() > 0 }

// IsFull reports whether no slot is free and no connection waits. In this
// state, another connection is reclaimed for the next one that arrives.
func (s *State) IsFull() bool { return s.queue.Free() <= 0 && s.queue.Len() == 0 }
