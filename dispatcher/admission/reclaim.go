package admission

import (
	"container/list"
	"time"

	"schedrestd/ipc/work"
)

// reclaim decides which connections are closed for those that wait. Connections
// at rest go first, oldest first. Connections that are being answered keep
// their answer: when asked, they end after the next one.
type reclaim struct {
	resting list.List // connections reported as Waiting or Resting, the oldest report first
	busy    list.List // being answered, as far as is known, or asked already
	asked   int       // that were asked in this round, and are there still
	round   int       // from 1
}

// mostAsked bounds how many connections are asked to yield at once.
const mostAsked = 64

// move puts c at the end of a list, or in none.
func (s *State) move(c *Conn, to *list.List) {
	if c.queue != nil {
		c.queue.Remove(c.place)
	}
	c.queue, c.place = to, nil
	if to != nil {
		c.place = to.PushBack(c)
	}
}

// press asks connections to yield for those that wait. For sources below half of the
// slots it asks at once: sources that have more than they would have if all had the
// same number, and then whatever rests. late is set when connections have waited for a
// while. Sources that want more than half get what rests then, too, and last come
// connections that are being answered: of the sources that wait, or of all when no
// other could be asked.
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

// pressOwn asks the oldest connection at rest of c's source, if others of it wait that
// are owed no slot.
func (s *State) pressOwn(c *Conn) {
	if s.wantsOwn(c) {
		s.take(&s.resting, 1, func(other *Conn) bool { return other.Source == c.Source })
	}
}

// take asks up to n connections of a list, oldest first, whose end frees a slot and
// that were not asked in this round.
func (s *State) take(l *list.List, n int, may func(*Conn) bool) {
	for e := l.Front(); e != nil && n > 0; {
		c := e.Value.(*Conn)
		e = e.Next() // asking moves c
		if c.round != s.round && !c.excused && may(c) {
			s.ask(c)
			n--
		}
	}
}

// ask decides that c yields, and puts it behind all other candidates.
func (s *State) ask(c *Conn) {
	s.move(c, &s.busy)
	c.round, c.asked = s.round, true
	s.asked++
	s.decide(Decision{Do: Yield, Conn: c})
}

// forget cancels the request to c to yield.
func (s *State) forget(c *Conn) {
	if c.asked && c.round == s.round {
		s.asked--
	}
	c.asked = false
}

const (
	yields = 2 * time.Second // how long a connection that was asked counts as one that will end
	deaf   = 5 * time.Second // … and an honest worker may take to close one at rest
)

// AskToYield asks every connection of one worker to yield, if all of them rest or
// busy is set, because the worker's place is needed. coming reports whether
// they are about to end; those that were asked a while ago and are still open
// are not. stubborn reports that a connection is still at rest, by the worker's
// own report, long after it was asked: an honest worker closes it.
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
