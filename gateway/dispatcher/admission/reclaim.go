package admission

import (
	"container/list"
	"time"
)

// reclaim selects the connections that must close to make room for waiting
// connections. It prefers connections at rest, beginning with the one that has
// rested longest. A connection on which a request is being answered closes
// after the answer.
//
// A worker may be slow, stopped or controlled by an attacker, and not do what it
// is asked. So each Tick asks other connections for the slots that are still
// missing. If connections were reclaimed only for new ones, a client could wait
// until the connection that was asked reached its time limit.
type reclaim struct {
	resting    list.List // connections reported as Waiting, Idle or Watching, oldest report first
	busy       list.List // connections reported as Answering or Calling or not reported yet, and connections already reclaimed
	askedCount int       // number of connections with asked set
}

// maxAsked limits how many connections are reclaimed between two Ticks.
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

// askForSlots asks for connections to be closed, so that waiting connections get
// slots. It takes these steps in order, until it has asked for enough connections:
//
//  1. To serve waiting sources that have less than half of the slots, it asks for
//     connections of sources that have more than their fair share. It begins
//     with connections at rest.
//  2. To serve the same waiting sources, it asks for connections at rest of
//     any source.
//  3. If onTick is true, it asks for further connections at rest, to serve
//     the other waiting sources.
//  4. If onTick is true, it also asks for connections that are being answered.
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

// askOwnSource reclaims one connection of c's source: the one that has rested
// longest. It does so only if the source has waiting connections, and can't get
// slots from other sources at once (see wantsOwn). If the source had to wait for
// the next Tick instead, the 99th percentile of a portal with 200 connections would
// rise from 0.1 s to 0.4 s, and of forty clients with ten slots some would get 503.
func (s *State) askOwnSource(c *Conn) {
	if s.wantsOwn(c) {
		s.askUpTo(&s.resting, 1, func(other *Conn) bool { return other.Source == c.Source })
	}
}

// askUpTo reclaims up to n connections: the first connections in the list l for
// which match returns true. It skips connections that were already reclaimed, and
// connections that would free no slot.
func (s *State) askUpTo(l *list.List, n int, match func(*Conn) bool) {
	for e := l.Front(); e != nil && n > 0; {
		c := e.Value.(*Conn)
		e = e.Next() // before reclaimConn moves c
		if !c.asked && c.holds == slot && match(c) {
			s.reclaimConn(c)
			n--
		}
	}
}

// reclaimConn asks the worker of c to close c soon. It moves c to the end of the
// list of busy connections, so that the others are reclaimed before c is again.
func (s *State) reclaimConn(c *Conn) {
	s.move(c, &s.busy)
	c.asked = true
	s.askedCount++
	s.decide(Decision{Action: Reclaim, Conn: c})
}

// clearAsked records that c is not expected to close soon.
func (s *State) clearAsked(c *Conn) {
	if c.asked {
		c.asked = false
		s.askedCount--
	}
}

// clearAllAsked makes it possible to reclaim other connections, and the same ones
// again.
func (s *State) clearAllAsked() {
	for e := s.busy.Front(); e != nil; e = e.Next() {
		s.clearAsked(e.Value.(*Conn))
	}
}

const (
	endLimit   = 2 * time.Second // a reclaimed connection is expected to close within this time
	closeLimit = 5 * time.Second // how long an honest worker may take to close a connection at rest
)

// ReclaimAll reclaims all connections of one worker, so that the worker can exit
// and another can replace it. If busy is false, it does so only if all these
// connections are at rest.
//
// The closing result reports whether all these connections are expected to
// close soon. It is false if a connection is still open endLimit after it was
// asked. The result stubborn reports whether a connection is still at rest
// closeLimit after it was asked. An honest worker would have closed such a
// connection.
func (s *State) ReclaimAll(now time.Time, conns []*Conn, busy bool) (closing, stubborn bool) {
	closing = len(conns) > 0
	for _, c := range conns {
		resting := c.list != nil && !isBusy(c.stage)
		closing = closing && (resting || busy)
		if !c.firstAskedAt.IsZero() {
			closing = closing && now.Sub(c.firstAskedAt) < endLimit
			stubborn = stubborn || resting && now.Sub(c.firstAskedAt) > closeLimit
		}
	}
	for _, c := range conns {
		if closing && c.list != nil && !c.asked {
			s.reclaimConn(c)
			if c.firstAskedAt.IsZero() {
				c.firstAskedAt = now
			}
		}
	}
	return closing, stubborn
}
