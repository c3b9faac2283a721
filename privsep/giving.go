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

// giving is which connections can give way to one that waits for a slot. Those that rest, or
// wait for a header, do so first, oldest first, as their workers report it. Those that are
// being answered keep their answer; asked, they end after the next one. Its fields are
// guarded by mu of slots.
type giving struct {
	still line // reported Waiting or Resting, in that order of time
	busy  line // Answering, as far as is known, or asked already
	asked int  // that were asked in this round, and are there still
	round int  // from 1
}

// mostPressed bounds how many connections are asked at once.
const mostPressed = 64

// press asks as many connections to give way as wait and are owed a slot; s.mu is held.
func (s *slots) press() {
	owed, _ := s.demand()
	for s.asked < min(owed, mostPressed) {
		c := s.giver()
		if c == nil {
			return
		}
		s.ask(c)
	}
}

// giver returns the connection that gives way first: the oldest at rest of a source that
// has more slots than it would have if all had the same number; the oldest of those that
// are being answered for it; the oldest at rest of any source. s.mu is held.
func (s *slots) giver() *connection {
	fair := s.fair()
	for _, l := range []*line{&s.still, &s.busy} {
		for c := l.first; c != nil; c = c.after {
			if c.round != s.round && !c.excused && s.has(c) > fair {
				return c
			}
		}
	}
	return s.resting()
}

// resting returns the oldest connection at rest whose end frees a slot; s.mu is held.
func (s *slots) resting() *connection {
	c := s.still.first
	for c != nil && c.excused {
		c = c.after
	}
	return c
}

// insist is press for connections that have waited a while. One that was asked and is
// there still no longer counts. Those that want more than their share get what rests, and
// last come those that are being answered: of the sources that wait, or of all when a
// slot is owed. s.mu is held.
func (s *slots) insist() {
	s.asked = 0
	s.round++
	s.press()
	owed, all := s.demand()
	for s.asked < min(all, mostPressed) {
		c := s.resting()
		if c == nil {
			break
		}
		s.ask(c)
	}
	anyone := owed > 0 && s.asked == 0
	n := min(s.total, mostPressed) - s.asked
	for c := s.busy.first; n > 0 && c != nil && c.round != s.round; {
		next := c.after
		if !c.excused && (anyone || s.wantsOwn(c)) {
			s.ask(c)
			n--
		}
		c = next
	}
}

// ask tells c's worker that its connection should give way; s.mu is held. A worker that can't be
// told now is asked about others first.
func (s *slots) ask(c *connection) {
	c.leave()
	s.busy.add(c)
	c.round = s.round
	if c.worker.Channel.TrySend(&ipc.Yield{ID: c.ID}) == nil {
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
	if s.wantsOwn(c) {
		s.ask(c)
	}
	s.press()
	return true
}

// pressSource asks the oldest of c's source that can give way; s.mu is held.
func (s *slots) pressSource(c *connection) {
	for one := s.still.first; one != nil; one = one.after {
		if one.source == c.source && !one.excused {
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
