package admission

import (
	"container/list"
	"time"

	"schedrestd/ipc/work"
)

// reclaim selects the connections that must close to make room for waiting
// connections. It prefers connections at rest, beginning with the one that has
// rested longest. A connection on which a request is being answered closes
// after the answer.
//
// A worker may be slow, stopped or controlled by an attacker, and not do what it
// is asked. So each Tick asks other connections for the slots that are still
// missing. If only new connections caused requests to yield, a client could wait
// until the connection that was asked reached its time limit.
type reclaim struct {
	resting    list.List // connections reported as Waiting or Idle, oldest report first
	busy       list.List // connections reported as Answering or not reported yet, and connections already asked to yield
	askedCount int       // number of connections with asked set
}

// maxAsked limits how many connections are asked to yield between two Ticks.
const maxAsked = 64

// move moves c from its current list, if any, to the end of another list. If
// the other list is nil, move only removes c.
func (s *State) move(c *Conn, to *list.List) {
	if c.list != nil {
		c.list.Remove(c.elem)
	}
	c.list, c.elem = to, nil
	if to != nil {
		c.elem = to.PushBack(c)
	}
}

// askForSlots asks connections to yield, so that waiting connections get slots.
// It takes these steps in order, until it has asked enough connections:
//
//  1. To serve waiting sources that have less than half of the slots, it asks
//     connections of sources that have more than their fair share. It begins
//     with connections at rest.
//  2. To serve the same waiting sources, it asks connections at rest of any
//     source.
//  3. If onTick is true, it asks further connections at rest, to serve the
//     other waiting sources.
//  4. If onTick is true, it also asks connections that are being answered.
//     Normally these are connections of waiting sources that can't get more
//     slots from other sources at once (see wantsOwn). But if a source with
//     less than half of the slots waits, and steps 1 to 3 found no connection,
//     they may be connections of any source.
//
// onTick is true in calls from Tick. By then, connections have already waited
// for a while.
func (s *State) askForSlots(onTick bool) {
	owed, total := s.demand()
	if !onTick {
		total = owed
	}
	fair := s.fairShare()
	rich := func(c *Conn) bool { return s.countedSlots(c) > fair }
	anyone := func(*Conn) bool { return true }
	remaining := func(demand int) int { return min(demand, maxAsked) - s.askedCount }
	s.askUpTo(&s.resting, remaining(owed), rich)
	s.askUpTo(&s.busy, remaining(owed), rich)
	s.askUpTo(&s.resting, remaining(total), anyone)
	switch {
	case !onTick:
	case owed > 0 && s.askedCount == 0:
		s.askUpTo(&s.busy, remaining(s.queue.Len()), anyone)
	default:
		s.askUpTo(&s.busy, remaining(s.queue.Len()), s.wantsOwn)
	}
}

// askOwnSource asks one connection of c's source to yield: the connection that
// has rested longest. It does so only if the source has waiting connections,
// and can't get slots from other sources at once (see wantsOwn). If the source
// had to wait for the next Tick instead, the 99th percentile of a portal with 200
// connections would rise from 0.1 s to 0.4 s, and of forty clients with ten slots
// some would get 503.
func (s *State) askOwnSource(c *Conn) {
	if s.wantsOwn(c) {
		s.askUpTo(&s.resting, 1, func(other *Conn) bool { return other.Source == c.Source })
	}
}

// askUpTo asks up to n connections to yield: the first connections in the list
// l for which match returns true. It skips connections that were already asked,
// and connections that would free no slot.
func (s *State) askUpTo(l *list.List, n int, match func(*Conn) bool) {
	for e := l.Front(); e != nil && n > 0; {
		c := e.Value.(*Conn)
		e = e.Next() // before requestYield moves c
		if !c.asked && !c.excused && !c.watches && match(c) {
			s.requestYield(c)
			n--
		}
	}
}

// requestYield asks c to yield. It moves c to the end of the list of busy
// connections, so that the other connections are asked before c is asked again.
func (s *State) requestYield(c *Conn) {
	s.move(c, &s.busy)
	c.asked = true
	s.askedCount++
	s.decide(Decision{Action: Reclaim, Conn: c})
}

// cancelYield records that c no longer has to yield.
func (s *State) cancelYield(c *Conn) {
	if c.asked {
		c.asked = false
		s.askedCount--
	}
}

// forgetAsked makes it possible to ask other connections, and to ask the same
// ones again.
func (s *State) forgetAsked() {
	for e := s.busy.Front(); e != nil; e = e.Next() {
		s.cancelYield(e.Value.(*Conn))
	}
}

const (
	yieldLimit = 2 * time.Second // a connection that was asked to yield is expected to close within this time
	closeLimit = 5 * time.Second // how long an honest worker may take to close a connection at rest
)

// AskToYield asks all connections of one worker to yield (to close soon), so
// that the worker can exit and another can replace it. If busy is false, it
// does so only if all these connections are at rest.
//
// The closing result reports whether all these connections are expected to
// close soon. It is false if a connection is still open yieldLimit after it was
// asked. The result stubborn reports whether a connection is still at rest
// closeLimit after it was asked. An honest worker would have closed such a
// connection.
func (s *State) AskToYield(now time.Time, conns []*Conn, busy bool) (closing, stubborn bool) {
	closing = len(conns) > 0
	for _, c := range conns {
		resting := c.list != nil && c.stage != work.Answering
		closing = closing && (resting || busy)
		if !c.firstAskedAt.IsZero() {
			closing = closing && now.Sub(c.firstAskedAt) < yieldLimit
			stubborn = stubborn || resting && now.Sub(c.firstAskedAt) > closeLimit
		}
	}
	for _, c := range conns {
		if closing && c.list != nil && !c.asked {
			s.requestYield(c)
			if c.firstAskedAt.IsZero() {
				c.firstAskedAt = now
			}
		}
	}
	return closing, stubborn
}
