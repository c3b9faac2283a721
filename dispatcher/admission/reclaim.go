package admission

import (
	"container/list"
	"time"

	"schedrestd/ipc/work"
)

// reclaim decides which connections must end to make room for waiting
// connections. Connections at rest are asked first, beginning with the one that
// has rested longest. If a connection that is being answered is asked to yield,
// it ends after its answer.
//
// A round begins with each call of Tick.
type reclaim struct {
	resting list.List // connections reported as Waiting or Resting, oldest report first
	busy    list.List // connections that are being answered, as far as is known, or were asked already
	asked   int       // number of connections that were asked in this round and are still open
	round   int       // number of the round, from 1
}

// mostAsked limits how many connections are asked to yield at the same time.
const mostAsked = 64

// move appends c to a list, after it has removed c from its current list. With
// nil, move only removes c.
func (s *State) move(c *Conn, to *list.List) {
	if c.queue != nil {
		c.queue.Remove(c.place)
	}
	c.queue, c.place = to, nil
	if to != nil {
		c.place = to.PushBack(c)
	}
}

// press asks connections to yield, so that waiting connections get slots. It
// makes these attempts in order, until it has asked enough connections:
//
//  1. For waiting sources that have less than half of the slots, it asks
//     connections of sources that have more than their fair number (see fair),
//     connections at rest first.
//  2. For the same sources, it asks any connection at rest.
//  3. If late is true, it also asks connections at rest for the other waiting
//     sources.
//  4. If late is true, it asks connections that are being answered. Normally
//     these are connections of waiting sources that can't get more slots from
//     others at once (see wantsOwn). But if a source with less than half of the
//     slots waits, and steps 1 to 3 found no connection, they may be
//     connections of any source.
//
// The argument late is true when Tick calls press, so connections have already
// waited for a while.
func (s *State) press(late bool) {
	owed, all := s.demand()
	if !late {
		all = owed
	}
	fair := s.fair()
	rich := func(c *Conn) bool { return s.has(c) > fair }
	anyone := func(*Conn) bool { return true }
	left := func(wanted int) int { return min(wanted, mostAsked) - s.asked }
	s.take(&s.resting, left(owed), rich)
	s.take(&s.busy, left(owed), rich)
	s.take(&s.resting, left(all), anyone)
	switch {
	case !late:
	case owed > 0 && s.asked == 0:
		s.take(&s.busy, left(s.waits), anyone)
	default:
		s.take(&s.busy, left(s.waits), s.wantsOwn)
	}
}

// pressOwn asks the oldest resting connection of c's source to yield, if
// connections of this source wait and the source can't get slots from others at
// once (see wantsOwn).
func (s *State) pressOwn(c *Conn) {
	if s.wantsOwn(c) {
		s.take(&s.resting, 1, func(other *Conn) bool { return other.Source == c.Source })
	}
}

// take asks up to n connections in the list l to yield, oldest first. It asks
// only connections for which the function may returns true. It skips
// connections whose end frees no slot, and connections that were already asked
// in this round.
func (s *State) take(l *list.List, n int, may func(*Conn) bool) {
	for e := l.Front(); e != nil && n > 0; {
		c := e.Value.(*Conn)
		e = e.Next() // before ask moves c
		if c.round != s.round && !c.excused && may(c) {
			s.ask(c)
			n--
		}
	}
}

// ask decides that c must yield, and puts c after all other candidates.
func (s *State) ask(c *Conn) {
	s.move(c, &s.busy)
	c.round, c.asked = s.round, true
	s.asked++
	s.decide(Decision{Do: Yield, Conn: c})
}

// forget cancels the request that c yield.
func (s *State) forget(c *Conn) {
	if c.asked && c.round == s.round {
		s.asked--
	}
	c.asked = false
}

const (
	yields = 2 * time.Second // how long a connection that was asked to yield counts as about to end
	deaf   = 5 * time.Second // how long an honest worker may take to close a connection at rest
)

// AskToYield asks every connection of one worker to yield, so that this worker
// can exit and another can take its place. If busy is false, it asks only if
// all these connections rest.
//
// The result coming reports whether the connections are about to end. It is
// false if a connection that was asked a while ago is still open. The result
// stubborn is true if a connection was asked long ago, and the worker still
// reports it at rest. An honest worker would have closed that connection.
func (s *State) AskToYield(now time.Time, conns []*Conn, busy bool) (coming, stubborn bool) {
	coming = len(conns) > 0
	for _, c := range conns {
		rests := c.queue != nil && c.stage != work.Answering
		coming = coming && (rests || busy)
		if !c.since.IsZero() {
			coming = coming && now.Sub(c.since) < yields
			stubborn = stubborn || rests && now.Sub(c.since) > deaf
		}
	}
	for _, c := range conns {
		if coming && c.queue != nil && !c.asked {
			s.ask(c)
			if c.since.IsZero() {
				c.since = now
			}
		}
	}
	return coming, stubborn
}
