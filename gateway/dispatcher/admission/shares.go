package admission

import "slices"

// A shares divides slots fairly among sources, like a semaphore.
type shares struct {
	size       int // number of slots
	limit      int // maximum number of slots of one source, even if no other source waits; 0: no limit
	maxWaiting int // number of connections that can wait

	free      int // free slots, including those of excused connections
	excused   int // number of excused connections, whose slots were given to other connections
	sources   map[Source]*account
	waiting   map[Source]*account // accounts of sources with waiting connections
	waitCount int                 // number of waiting connections
	parked    uint64              // number of connections that had to wait

	decisions
}

// An account holds the number of slots and the waiting connections of one
// source. A source that has neither slots nor waiting connections has no
// account.
type account struct {
	held    int
	waiting []*Conn // in the order of arrival
}

func newShares(size, limit, maxWaiting int) shares {
	return shares{size: size, limit: limit, maxWaiting: maxWaiting, free: size,
		sources: map[Source]*account{}, waiting: map[Source]*account{}}
}

// account returns the account of a source, and creates it if necessary.
func (s *shares) account(source Source) *account {
	a := s.sources[source]
	if a == nil {
		a = new(account)
		s.sources[source] = a
	}
	return a
}

// closeAccount deletes the account of a source if the source has no slots and
// no waiting connections.
func (s *shares) closeAccount(source Source) {
	a := s.sources[source]
	if len(a.waiting) == 0 {
		delete(s.waiting, source)
		if a.held == 0 {
			delete(s.sources, source)
		}
	}
}

// slotsOf returns how many slots the source has.
func (s *shares) slotsOf(source Source) int {
	if a := s.sources[source]; a != nil {
		return a.held
	}
	return 0
}

// park puts c into the queue of its source.
func (s *shares) park(c *Conn) {
	a := s.account(c.Source)
	a.waiting = append(a.waiting, c)
	s.waiting[c.Source] = a
	s.waitCount++
	s.parked++
	c.arrival = s.parked
}

// last returns the newest waiting connection of the source that has the most
// waiting connections.
func (s *shares) last() *Conn {
	longest, last := 0, (*Conn)(nil)
	for _, a := range s.waiting {
		n := len(a.waiting)
		c := a.waiting[n-1]
		if n > longest || n == longest && c.arrival > last.arrival {
			longest, last = n, c
		}
	}
	return last
}

// atLimit reports whether the source of c has the maximum number of slots for
// one source.
func (s *shares) atLimit(c *Conn) bool {
	return s.limit > 0 && !c.Proxy && s.slotsOf(c.Source) >= s.limit
}

// grant gives c a slot.
func (s *shares) grant(c *Conn) {
	s.free--
	s.account(c.Source).held++
	c.hasSlot = true
	s.decide(Decision{Action: Admit, Conn: c})
}

// releaseSlot takes back the slot of c.
func (s *shares) releaseSlot(c *Conn) {
	if !c.hasSlot {
		panic("admission: a slot was freed that was not taken")
	}
	c.hasSlot = false
	if c.excused {
		s.excused--
	} else {
		s.free++
	}
	s.sources[c.Source].held--
	s.closeAccount(c.Source)
}

// admitNext gives free slots to waiting connections whose sources have not
// reached their limit.
func (s *shares) admitNext() {
	for s.free > 0 {
		threshold := max(s.fairShare(), min(8, s.half())) // lets the worker of a user get several requests in a row
		rank := func(c *Conn) int {
			if n := s.countedSlots(c); n >= threshold {
				return n
			}
			return 0
		}
		var first *Conn
		for _, a := range s.waiting {
			c := a.waiting[0]
			if !s.atLimit(c) && (first == nil || rank(c) < rank(first) || rank(c) == rank(first) && c.arrival < first.arrival) {
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
	s.waitCount--
	s.closeAccount(c.Source)
}

// countedSlots returns how many slots count against the source of c: none if
// the source is exempt, and otherwise all its slots.
func (s *shares) countedSlots(c *Conn) int {
	if c.Exempt {
		return 0
	}
	return s.slotsOf(c.Source)
}

// half returns half of the number of slots. If a waiting source has fewer slots
// than this, connections of other sources are asked to yield at once.
func (s *shares) half() int { return max(1, s.size/2) }

// fairShare returns how many slots each source would have if all slots were
// divided equally among the sources with connections.
func (s *shares) fairShare() int { return max(1, s.size/max(1, len(s.sources))) }

// wantsOwn reports whether c's source has waiting connections, but can't get
// more slots from other sources at once. Such a source already has at least
// half of all slots, or the maximum for one source.
func (s *shares) wantsOwn(c *Conn) bool {
	a := s.waiting[c.Source]
	return a != nil && (s.atLimit(a.waiting[0]) || s.countedSlots(a.waiting[0]) >= s.half())
}

// demand returns two numbers of waiting connections. total counts the
// connections that could use a slot. owed counts only those for which other
// sources' connections are asked to yield at once. For each source that is not
// exempt, these are at most as many as the source needs to reach half of the
// slots. There may be thousands of sources, so demand stops counting when owed
// reaches maxAsked.
func (s *shares) demand() (owed, total int) {
	for _, a := range s.waiting {
		c, n := a.waiting[0], len(a.waiting)
		if s.limit > 0 && !c.Proxy {
			n = min(n, max(0, s.limit-a.held))
		}
		total += n
		if !c.Exempt {
			n = min(n, max(0, s.half()-a.held))
		}
		if owed += n; owed >= maxAsked {
			break
		}
	}
	return owed, total
}
