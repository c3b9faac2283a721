package privsep

import (
	"time"

	"schedrestd/ipc"
)

// line is connections in the order in which they came into it. A connection is in one at most.
type line struct{ first, last *connection }

func (l *line) add(c *connection) {
	c.in, c.before = l, l.last
	if l.last != nil {
		l.last.after = c
	} else {
		l.first = c
	}
	l.last = c
}

// leave takes c out of the line that it is in.
func (c *connection) leave() {
	if c.in == nil {
		return
	}
	if c.before != nil {
		c.before.after = c.after
	} else {
		c.in.first = c.after
	}
	if c.after != nil {
		c.after.before = c.before
	} else {
		c.in.last = c.before
	}
	c.in, c.before, c.after = nil, nil, nil
}

// giving is which connections can give way to somebody who waits for a slot. Those that rest, or
// wait for a header, do so first, oldest first, as their workers report it. Those that are
// being answered keep their answer; asked, they end after the next one. Its fields are
// guarded by mu of slots.
type giving struct {
	still  line // reported Waiting or Resting, in that order of time
	busy   line // Answering, as far as is known, or asked already
	wanted int  // how many wait for a slot
	eager  int  // connections to ask for each of them
	asked  int  // that were asked in this round, and are there still
	round  int
}

// mostEager bounds how many connections are asked at once for one listener. It grows to that while
// more and more are found waiting there: one who waits alone ends one connection.
const mostEager = 64

// want says that one more (or, with -1, one less) waits for a slot.
func (s *slots) want(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted += n
	if n > 0 {
		s.eager = min(max(1, 2*s.eager), mostEager)
		s.pressed.Store(true)
		s.press()
	}
}

// calm is called when nobody knocks any more.
func (s *slots) calm() {
	if !s.pressed.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pressed.Store(false)
	s.eager = 0
}

// press asks the oldest of those that can give way; s.mu is held.
func (s *slots) press() {
	for s.asked < s.wanted*max(1, s.eager) && s.still.first != nil {
		s.ask(s.still.first)
	}
}

// insist is press for who has waited a while: what was asked and is there still no longer counts,
// and when nobody is left who rests, those that are busy are asked to come to an end.
func (s *slots) insist() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = 0
	s.round++
	s.press()
	if s.asked > 0 {
		return
	}
	for n := s.wanted * max(1, s.eager); n > 0 && s.busy.first != nil && s.busy.first.round != s.round; n-- {
		s.ask(s.busy.first)
	}
}

// ask tells c's worker that its connection should give way; s.mu is held. A worker that can't be
// told now is asked about others first.
func (s *slots) ask(c *connection) {
	c.leave()
	s.busy.add(c)
	c.round = s.round
	if c.worker.channel.TrySend(&ipc.Yield{ID: c.ID}) == nil {
		s.asked++
		c.asked = true
	}
}

// hold notes that a worker has c.
func (s *slots) hold(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.stage = ipc.Answering // until it is said to be something else
	s.busy.add(c)
}

// report notes how far c has come. It reports false when that was known.
func (s *slots) report(c *connection, stage ipc.Stage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.stage == stage {
		return false
	}
	c.stage = stage
	s.forget(c)
	if stage == ipc.Answering {
		s.busy.add(c)
		return true
	}
	s.still.add(c)
	if s.sources.waits(c) {
		s.ask(c)
	}
	s.press()
	return true
}

// pressSource asks the oldest of c's source that can give way; c is parked.
func (s *slots) pressSource(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := s.still.first; one != nil; one = one.after {
		if one.source == c.source {
			s.ask(one)
			return
		}
	}
}

// forget takes c out of its line; s.mu is held.
func (s *slots) forget(c *connection) {
	c.leave()
	if c.asked && c.round == s.round {
		s.asked--
	}
	c.asked = false
}

const (
	heed = 2 * time.Second // how long who was asked to give way counts as one that will
	deaf = 5 * time.Second // … and an honest worker may take to close a connection that rests
)

// urge asks every one of list, if all rest, or busy is set. It tells whether they are about to end: those that were asked
// for a while, and are there still, are not. stubborn is one that rests, as its worker says, long after it was asked: an honest
// worker closes that.
func (s *slots) urge(list []*connection, busy bool, now time.Time) (coming, stubborn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	coming = len(list) > 0
	for _, c := range list {
		rests := c.in != nil && c.stage != ipc.Answering
		coming = coming && (rests || busy)
		if !c.urged.IsZero() {
			coming = coming && now.Sub(c.urged) < heed
			stubborn = stubborn || rests && now.Sub(c.urged) > deaf
		}
	}
	for _, c := range list {
		if coming && c.in != nil && !c.asked {
			s.ask(c)
			if c.urged.IsZero() {
				c.urged = now
			}
		}
	}
	return coming, stubborn
}
