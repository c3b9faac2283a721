package admission

import "slices"

// shares is a semaphore that is fair to sources.
type shares struct {
	size  int // number of slots
	limit int // maximum number of slots of one source, even if no other source waits; 0: no such limit
	room  int // number of connections that can wait

	free    int // free slots, including those of excused connections
	excused int // number of excused connections, which are open without a slot
	sources map[Source]*account
	waiting map[Source]*account // accounts of sources with waiting connections
	waits   int                 // number of waiting connections
	parked  uint64              // number of connections that had to wait

	decisions
}

// account holds the slots and waiting connections of one source. A source that
// has neither has no account.
type account struct {
	held    int
	waiting []*Conn // in the order of arrival
}

func newShares(size, limit, room int) shares {
	return shares{size: size, limit: limit, room: room, free: size, sources: map[Source]*account{}, waiting: map[Source]*account{}}
}

// account returns the account of a source. If the source has no account, it
// creates one.
func (s *shares) account(of Source) *account {
	a := s.sources[of]
	if a == nil {
		a = new(account)
		s.sources[of] = a
	}
	return a
}

// close deletes the account of a source that has no slots and no waiting
// connections.
func (s *shares) close(of Source) {
	a := s.sources[of]
	if len(a.waiting) == 0 {
		delete(s.waiting, of)
		if a.held == 0 {
			delete(s.sources, of)
		}
	}
}

// held returns how many slots the source has.
func (s *shares) held(of Source) int {
	if a := s.sources[of]; a != nil {
		return a.held
	}
	return 0
}

// park puts c into the queue of its source.
func (s *shares) park(c *Conn) {
	a := s.account(c.Source)
	a.waiting = append(a.waiting, c)
	s.waiting[c.Source] = a
	s.waits++
	s.parked++
	c.arrival = s.parked
}

// last returns the newest waiting connection of the source that has the most
// waiting connections.
func (s *shares) last() *Conn {
	most, last := 0, (*Conn)(nil)
	for _, a := range s.waiting {
		n := len(a.waiting)
		c := a.waiting[n-1]
		if n > most || n == most && c.arrival > last.arrival {
			most, last = n, c
		}
	}
	return last
}

// isFull reports whether the source of c has as many slots as one source may
// have.
func (s *shares) isFull(c *Conn) bool {
	return s.limit > 0 && !c.Proxy && s.held(c.Source) >= s.limit
}

// grant gives c a slot.
func (s *shares) grant(c *Conn) {
	s.free--
	s.account(c.Source).held++
	c.held = true
	s.decide(Decision{Do: Admit, Conn: c})
}

// leave takes back the slot of c.
func (s *shares) leave(c *Conn) {
	if !c.held {
		panic("admission: a slot was freed that was not taken")
	}
	c.held = false
	if c.excused {
		s.excused--
	} else {
		s.free++
	}
	s.sources[c.Source].held--
	s.close(c.Source)
}

// admitNext gives free slots to waiting connections whose sources may have
// another slot.
func (s *shares) admitNext() {
	for s.free > 0 {
		few := max(s.fair(), min(8, s.half())) // so the worker of a user gets several requests in a row
		rank := func(c *Conn) int {
			if n := s.has(c); n >= few {
				return n
			}
			return 0
		}
		var first *Conn
		for _, a := range s.waiting {
			c := a.waiting[0]
			if !s.isFull(c) && (first == nil || rank(c) < rank(first) || rank(c) == rank(first) && c.arrival < first.arrival) {
				first = c
			}
		}
		if first == nil {
			return
		}
		s.grant(first)
		s.unpark(first)
	}
}

// unpark removes the waiting connection c from its queue.
func (s *shares) unpark(c *Conn) {
	a := s.waiting[c.Source]
	i := slices.Index(a.waiting, c)
	a.waiting = slices.Delete(a.waiting, i, i+1)
	s.waits--
	s.close(c.Source)
}

// has returns how many slots count against the source of c. Slots of an exempt
// source do not count.
func (s *shares) has(c *Conn) int {
	if c.Exempt {
		return 0
	}
	return s.held(c.Source)
}

// half returns half of the slots. While a source with fewer slots waits,
// connections of other sources are asked to yield at once.
func (s *shares) half() int { return max(1, s.size/2) }

// fair returns how many slots each source would have if all sources that hold
// or want slots had equally many.
func (s *shares) fair() int { return max(1, s.size/max(1, len(s.sources))) }

// wantsOwn reports whether connections of c's source wait although the source
// has all the slots that it can get from others at once: half of all slots, or
// as many as one source may have.
func (s *shares) wantsOwn(c *Conn) bool {
	a := s.waiting[c.Source]
	return a != nil && (s.isFull(a.waiting[0]) || s.has(a.waiting[0]) >= s.half())
}

// demand returns how many of the waiting connections could use a slot (all),
// and how many of these would not bring their source above half of the slots
// (owed). For the latter, connections of other sources are asked to yield at
// once. demand stops counting when owed reaches mostAsked, because there may be
// thousands of sources.
func (s *shares) demand() (owed, all int) {
	for _, a := range s.waiting {
		c, n := a.waiting[0], len(a.waiting)
		if s.limit > 0 && !c.Proxy {
			n = min(n, max(0, s.limit-a.held))
		}
		all += n
		if !c.Exempt {
			n = min(n, max(0, s.half()-a.held))
		}
		if owed += n; owed >= mostAsked {
			break
		}
	}
	return owed, all
}
