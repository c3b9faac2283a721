package admission

import (
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
)

// A holding is what a connection counts as.
type holding uint8

const (
	nothing    holding = iota // it waits for a slot, or is not known here any longer
	slot                      // it has a slot
	lentSlot                  // its worker is silent, so another connection uses its slot
	watchPlace                // it has given up its slot, because it waits for a change or an accounting daemon, or has waited for one
)

// A shares divides slots fairly among sources. A free slot goes to the waiting
// source that has the fewest. Sources with equally many take turns.
type shares struct {
	queue      *semaphore.Queue[Source, *Conn] // of slots
	watchers   *semaphore.Queue[Source, *Conn] // of places for connections that have given up their slots; none waits
	size       int                             // number of slots
	limit      int                             // maximum number of slots of one source, even if no other source waits; 0: no limit
	maxWaiting int                             // number of connections that can wait
	excused    int                             // number of excused connections, whose slots were given to other connections
	waited     uint64                          // number of connections that had to wait

	decisions
}

func newShares(c Config) *shares {
	s := &shares{size: c.Slots, limit: c.PerSource, maxWaiting: limit.Waiting.Of(c.Waiting).Total}
	s.watchers = semaphore.NewQueue[Source, *Conn](limit.Watching.Of(c.Watching), nil)
	s.queue = semaphore.NewQueue(limit.Slots.Of(c.Slots), func(_ Source, _ int, first *Conn) int {
		if s.atLimit(first) {
			return -1
		}
		return s.countedSlots(first)
	})
	return s
}

// admitNext gives free slots to waiting connections.
func (s *shares) admitNext() {
	for c, ok := s.queue.Next(); ok; c, ok = s.queue.Next() {
		c.holds = slot
		s.decide(Decision{Action: Admit, Conn: c})
	}
}

// releaseSlot takes back the slot of c, or its place among those that wait for a
// change.
func (s *shares) releaseSlot(c *Conn) {
	switch c.holds {
	case nothing:
		panic("admission: a slot was freed that was not taken")
	case watchPlace:
		s.watchers.Hold(c.Source, -1)
	case lentSlot:
		s.excused--
		s.queue.AddFree(-1)
		s.queue.Hold(c.Source, -1)
	case slot:
		s.queue.Hold(c.Source, -1)
	}
	c.holds = nothing
}

// beginWatch takes back the slot of c, which waits for a change, unless too many
// connections do.
func (s *shares) beginWatch(c *Conn) {
	if c.holds != slot || s.watchers.Free() <= 0 || !c.Proxy && s.watchers.AtShare(c.Source) {
		return
	}
	c.holds = watchPlace
	s.watchers.Hold(c.Source, 1)
	s.queue.Hold(c.Source, -1)
}

// endWatch gives c its slot again, if one is free for its source.
func (s *shares) endWatch(c *Conn) {
	if c.holds != watchPlace || s.queue.Free() <= 0 || s.atLimit(c) {
		return
	}
	c.holds = slot
	s.watchers.Hold(c.Source, -1)
	s.queue.Hold(c.Source, 1)
}

// excuse lets other connections use the slot of c, which still counts against
// its source.
func (s *shares) excuse(c *Conn) {
	c.holds = lentSlot
	s.excused++
	s.queue.AddFree(1)
}

// restore undoes excuse. Until enough connections end, more than the slots are held.
func (s *shares) restore(c *Conn) {
	c.holds = slot
	s.excused--
	s.queue.AddFree(-1)
	if needsNoSlot(c.stage) {
		s.beginWatch(c)
	}
}

// refuse refuses the waiting connection c.
func (s *shares) refuse(c *Conn, reason Reason) {
	s.queue.Remove(c.Source, c)
	s.decide(Decision{Action: Refuse, Conn: c, Reason: reason})
}

// last returns the newest waiting connection of the source that has the most
// waiting connections. The package comment says why it is not the newest of all.
func (s *shares) last() *Conn {
	longest, last := 0, (*Conn)(nil)
	for source := range s.queue.WaitingKeys {
		n := s.queue.Waiting(source)
		if c := s.queue.Last(source); n > longest || n == longest && c.arrival > last.arrival {
			longest, last = n, c
		}
	}
	return last
}

// atLimit reports whether the source of c has the maximum number of slots for
// one source.
func (s *shares) atLimit(c *Conn) bool {
	return s.limit > 0 && !c.Proxy && s.queue.Held(c.Source) >= s.limit
}

// countedSlots returns how many slots count against the source of c: none if
// the source is exempt, and otherwise all its slots.
func (s *shares) countedSlots(c *Conn) int {
	if c.Exempt {
		return 0
	}
	return s.queue.Held(c.Source)
}

// half returns half of the number of slots. If a waiting source has fewer slots
// than this, connections of other sources are reclaimed at once.
func (s *shares) half() int { return max(1, s.size/2) }

// fairShare returns how many slots each source would have if all slots were
// divided equally among the sources with connections.
func (s *shares) fairShare() int { return max(1, s.size/max(1, s.queue.Keys())) }

// wantsOwn reports whether c's source has waiting connections, but can't get
// more slots from other sources at once. Such a source already has at least
// half of all slots, or the maximum for one source.
func (s *shares) wantsOwn(c *Conn) bool {
	first, ok := s.queue.First(c.Source)
	return ok && (s.atLimit(first) || s.countedSlots(first) >= s.half())
}

// demand returns two numbers of waiting connections. total counts the
// connections that could use a slot. owed counts only those for which other
// sources' connections are reclaimed at once. For each source that is not
// exempt, these are at most as many as the source needs to reach half of the
// slots. There may be thousands of sources, so demand stops counting when owed
// reaches maxAsked.
func (s *shares) demand() (owed, total int) {
	for source, c := range s.queue.WaitingKeys {
		n, held := s.queue.Waiting(source), s.queue.Held(source)
		if s.limit > 0 && !c.Proxy {
			n = min(n, max(0, s.limit-held))
		}
		total += n
		if !c.Exempt {
			n = min(n, max(0, s.half()-held))
		}
		if owed += n; owed >= maxAsked {
			break
		}
	}
	return owed, total
}
