package privsep

import "slices"

// shares decides which connections have a slot. It is a semaphore that is fair to the
// sources of the connections. It has no lock, no clock and no process: its caller
// provides them (slots).
//
// One source may have every slot while no other source waits. A free slot goes to the
// waiting source that has the fewest, and there to the connection that came first.
// Sources that have few count as having none. They are served in the order in which they
// came, so that a user's worker gets what that user's clients ask for at once.
type shares struct {
	size  int // slots
	limit int // slots of one source, whether others wait or not; 0: no such limit
	room  int // connections that can wait

	free    int // slots; slots of excused connections are among them
	excused int // connections that are held without a slot
	count   map[source]int
	waiting map[source][]*connection
	total   int    // that wait
	came    uint64 // the last of them
}

func newShares(size, limit, room int) shares {
	return shares{size: size, limit: limit, room: room, free: size, count: map[source]int{}, waiting: map[source][]*connection{}}
}

// admission is what becomes of a connection that came.
type admission int

const (
	entered admission = iota // it has a slot
	parked                   // it waits for one
	refused                  // there is no room to wait
)

// enter gives c a slot, or has it wait. When there is no room to wait, the last one of the
// source that has most of it is evicted, so that clients that fill the room keep no others
// out.
func (s *shares) enter(c *connection) (what admission, evicted *connection) {
	queue, full := s.waiting[c.source], s.isFull(c)
	if s.free > 0 && !full && len(queue) == 0 {
		s.grant(c)
		return entered, nil
	}
	most := max(1, s.room/2) // so that one source leaves room for others
	if full {                // it waits for its own connections, which may never end
		most = min(most, max(1, s.size/2))
	}
	if len(queue) >= most {
		return refused, nil
	}
	if s.total >= s.room {
		if evicted = s.last(); len(s.waiting[evicted.source]) <= len(queue)+1 {
			return refused, nil
		}
		s.unpark(evicted)
	}
	s.came++
	c.came = s.came
	s.waiting[c.source] = append(queue, c)
	s.total++
	return parked, evicted
}

// last returns the connection that came last of those of a source that has the most waiting.
func (s *shares) last() *connection {
	most, last := 0, (*connection)(nil)
	for _, queue := range s.waiting {
		c := queue[len(queue)-1]
		if len(queue) > most || len(queue) == most && c.came > last.came {
			most, last = len(queue), c
		}
	}
	return last
}

// isFull reports whether c's source has as many slots as one source may ever have.
func (s *shares) isFull(c *connection) bool {
	return s.limit > 0 && !c.proxy && s.count[c.source] >= s.limit
}

func (s *shares) grant(c *connection) {
	s.free--
	s.count[c.source]++
	c.held = true
}

// leave takes back what c holds. pick gives it away.
func (s *shares) leave(c *connection) {
	if !c.held {
		panic("privsep: a slot was freed that was not taken")
	}
	c.held = false
	if c.excused {
		s.excused--
	} else {
		s.free++
	}
	if s.count[c.source]--; s.count[c.source] == 0 {
		delete(s.count, c.source)
	}
}

// excuse gives c's slot to others, although c is still there, and counts against its
// source. There are never more such connections than slots.
func (s *shares) excuse(c *connection) {
	if c.held && !c.excused && s.excused < s.size {
		c.excused = true
		s.excused++
		s.free++
	}
}

// pick gives a free slot to a connection that waits, if there is one that may have it.
func (s *shares) pick() *connection {
	if s.free <= 0 {
		return nil
	}
	var first *connection
	few := max(s.fair(), min(8, s.half()))
	rank := func(c *connection) int {
		if s.has(c) < few {
			return 0
		}
		return s.has(c)
	}
	for _, queue := range s.waiting {
		c := queue[0]
		if s.isFull(c) {
			continue
		}
		if first == nil || rank(c) < rank(first) || rank(c) == rank(first) && c.came < first.came {
			first = c
		}
	}
	if first != nil {
		s.unpark(first)
		s.grant(first)
	}
	return first
}

// unpark removes c from those that wait. It reports false when c is not among them.
func (s *shares) unpark(c *connection) bool {
	queue := s.waiting[c.source]
	i := slices.Index(queue, c)
	if i < 0 {
		return false
	}
	s.total--
	if queue = slices.Delete(queue, i, i+1); len(queue) == 0 {
		delete(s.waiting, c.source)
	} else {
		s.waiting[c.source] = queue
	}
	return true
}

// has returns how many slots of c's source count against it.
func (s *shares) has(c *connection) int {
	if c.exempt {
		return 0
	}
	return s.count[c.source]
}

// half is the share of a source that wants more slots than are free. Up to it, others
// give way.
func (s *shares) half() int { return max(1, s.size/2) }

// demand returns how many of those that wait could use a slot, and how many of these
// are owed one, because their source has less than its share. It stops counting when
// mostPressed are owed one.
func (s *shares) demand() (owed, all int) {
	for _, queue := range s.waiting {
		c, n := queue[0], len(queue)
		if s.limit > 0 && !c.proxy {
			n = min(n, max(0, s.limit-s.count[c.source]))
		}
		all += n
		if !c.exempt {
			n = min(n, max(0, s.half()-s.count[c.source]))
		}
		if owed += n; owed >= mostPressed {
			break // no more are asked at once; there may be thousands of sources
		}
	}
	return owed, all
}

// wantsOwn reports whether connections of c's source wait, and others owe it no slot.
func (s *shares) wantsOwn(c *connection) bool {
	queue := s.waiting[c.source]
	return len(queue) > 0 && (s.isFull(queue[0]) || s.has(queue[0]) >= s.half())
}

// fair is how many slots each source would have, if all that hold or want one had the
// same number.
func (s *shares) fair() int {
	n := len(s.count)
	for source := range s.waiting {
		if n >= s.size {
			break // one slot each, however many there are
		}
		if s.count[source] == 0 {
			n++
		}
	}
	return max(1, s.size/max(1, n))
}
