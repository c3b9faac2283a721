// Package admission decides which connections are served, which wait, and which are
// closed. It counts slots, divides them fairly among the sources of connections, and
// blocks sources that offend.
//
// It is pure: the caller reports events, each with its time, and carries out the
// Decisions that follow from them. There is no clock, lock, goroutine or descriptor in
// here, and two calls at once are a fault of the caller's. While connections wait, the
// caller calls Tick every TickInterval. The way in is New.
//
// The rules, in the order in which they apply to a connection that arrives:
//
//   - A source that is blocked for its offences is refused (package penalty).
//   - A source may have every slot while no other source waits, but never more than
//     Config.PerSource, if that is set.
//   - A connection that finds no slot waits. One source has at most half of the room to
//     wait; when the room is full, the source that has most of it loses its last one.
//   - A free slot goes to the waiting source that has the fewest. Sources that have
//     few count as having none, and are served in the order in which they came.
//   - For a source below half of the slots, other connections are reclaimed at once;
//     for one above it, after TickInterval (reclaim.go).
//
// Exempt sources have no penalties and no share, and proxies no PerSource limit either.
package admission

import (
	"container/list"
	"time"

	"schedrestd/ipc/work"
	"schedrestd/penalty"
)

// Config sets the limits.
type Config struct {
	Slots     int           // connections that are served at once
	PerSource int           // … of one source; 0: no such limit
	Waiting   int           // connections that may wait for a slot
	Patience  time.Duration // how long a connection waits while its source has PerSource others
	Penalties penalty.Rules
}

// TickInterval is how often Tick is to be called while connections wait. It is also how
// long a connection waits before those that are being answered are asked to make room.
const TickInterval = 200 * time.Millisecond

// Conn is one connection. The caller sets the exported fields before it
// arrives, and does not touch the others.
type Conn struct {
	Source Source
	Exempt bool // its source has no penalties, and no share
	Proxy  bool // it speaks for many clients: PerSource does not bound it
	Ref    any  // the caller's own

	held    bool // has a slot
	excused bool // … which was given to others, because its worker is silent
	arrival uint64
	expires time.Time // ends its wait for its own source; zero: it has no such end

	stage work.Stage // as the worker reports it; zero until a worker has the connection
	queue *list.List // resting or busy; nil until a worker has it
	place *list.Element
	round int       // of the last time it was asked to yield
	asked bool      // … in this round, and it has done nothing since
	since time.Time // when it was first asked, for its user's worker
}

// State holds the state of all connections. It is not safe for concurrent use.
type State struct {
	patience time.Duration // Config.Patience
	shutDown bool
	shares
	reclaim
	penalties
}

// New returns a State without connections.
func New(c Config) *State {
	s := &State{patience: c.Patience, shares: newShares(c.Slots, c.PerSource, c.Waiting), penalties: newPenalties(c.Penalties)}
	s.round = 1
	return s
}

// Arrived reports a new connection. It is admitted, refused, or waits. When there is no
// room to wait, the last one of the source that has most of it is refused: clients that
// fill the room would otherwise keep all others out.
func (s *State) Arrived(now time.Time, c *Conn) {
	if wait := s.Blocked(now, c); wait > 0 {
		s.decide(Decision{Do: Refuse, Conn: c, Why: Blocked, Wait: wait})
		return
	}
	if s.shutDown {
		s.decide(Decision{Do: Refuse, Conn: c, Why: ShutDown})
		return
	}
	a := s.account(c.Source)
	defer s.close(c.Source)
	full := s.isFull(c)
	if s.free > 0 && !full && len(a.waiting) == 0 {
		s.grant(c)
		return
	}
	most := max(1, s.room/2) // so that one source leaves room for others
	if full {                // it waits for its own connections, which may never end
		most = min(most, s.half())
		c.expires = now.Add(s.patience)
	}
	crowded := len(a.waiting) >= most
	if !crowded && s.waits >= s.room {
		last := s.last()
		if crowded = len(s.sources[last.Source].waiting) <= len(a.waiting)+1; !crowded {
			s.unpark(last)
			s.decide(Decision{Do: Refuse, Conn: last, Why: Crowded})
		}
	}
	if crowded {
		s.decide(Decision{Do: Refuse, Conn: c, Why: Crowded})
		return
	}
	s.park(c)
	s.press(false)
	s.pressOwn(c)
}

// Taken reports that a worker serves c.
func (s *State) Taken(c *Conn) {
	c.stage = work.Answering // until its worker reports something else
	s.move(c, &s.busy)
}

// Progress reports the state of c. It returns false when that has not changed.
func (s *State) Progress(c *Conn, stage work.Stage) (changed bool) {
	if c.stage == stage {
		return false
	}
	c.stage = stage
	s.forget(c)
	if stage == work.Answering {
		s.move(c, &s.busy)
		return true
	}
	s.move(c, &s.resting)
	s.pressOwn(c)
	s.press(false)
	return true
}

// Left reports that a connection with a slot is closed, by whichever side.
func (s *State) Left(c *Conn) {
	s.forget(c)
	s.move(c, nil)
	s.leave(c)
	s.admitNext()
}

// Silent reports connections whose workers have not answered for a while. Their slots
// go to others, although the connections stay and count for their sources: with
// become_user, users can stop their own workers. There are never more such connections
// than slots.
func (s *State) Silent(conns []*Conn) {
	for _, c := range conns {
		if c.held && !c.excused && s.excused < s.size {
			c.excused = true
			s.excused++
			s.free++
		}
	}
	s.admitNext()
}

// Tick reports that TickInterval has passed while connections wait.
func (s *State) Tick(now time.Time) {
	s.expire(func(c *Conn) bool { return !c.expires.IsZero() && now.After(c.expires) }, TimedOut)
	if s.waits > 0 {
		s.asked = 0 // those that were asked and are there still no longer count
		s.round++
		s.press(true)
	}
}

// Close refuses the connections that wait, and all that arrive from now on.
func (s *State) Close() {
	s.shutDown = true
	s.expire(func(*Conn) bool { return true }, ShutDown)
}

// expire refuses the connections that wait and are over.
func (s *State) expire(over func(*Conn) bool, why Reason) {
	for _, a := range s.waiting {
		for i := 0; i < len(a.waiting); {
			if c := a.waiting[i]; over(c) {
				s.unpark(c)
				s.decide(Decision{Do: Refuse, Conn: c, Why: why})
			} else {
				i++
			}
		}
	}
}

// Waiting reports whether connections wait, so that Tick has to be called.
func (s *State) Waiting() bool { return s.waits > 0 }

// IsFull reports whether no slot is free and no connection waits: the next one that
// arrives makes others yield.
func (s *State) IsFull() bool { return s.free <= 0 && s.waits == 0 }
