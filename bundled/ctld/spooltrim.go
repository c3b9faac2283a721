package ctld

import "slices"

// trim drops records if list exceeds its limit. Without this limit the records
// could fill the journal, and the controller would accept no more jobs.
func (s *spool) trim(list *records) {
	for uid, surplus := range s.surplus(list) {
		s.c.log.Error("job records dropped: accounting spool full",
			"uid", uid, "records", len(surplus), "first", key(list.prefix, surplus[0]))
		if err := s.drop(list, surplus); err != nil {
			s.c.log.Error("dropping job records failed", "error", err)
		}
	}
}

// userRecords holds the records of one user, the oldest first.
type userRecords struct {
	numbers []uint64
	sizes   []int64
	bytes   int64
}

// surplus returns, for each user, the numbers of the records to drop. It
// repeatedly selects the oldest record of the user whose records take the most
// space, until the remaining records are within the limit.
func (s *spool) surplus(list *records) map[uint32][]uint64 {
	s.mu.Lock()
	numbers := slices.Clone(list.numbers)
	s.mu.Unlock()
	users := map[uint32]*userRecords{}
	total := int64(0)
	for _, n := range numbers {
		uid, size := s.c.journal.Stat(key(list.prefix, n))
		u := users[uid]
		if u == nil {
			u = new(userRecords)
			users[uid] = u
		}
		u.numbers, u.sizes, u.bytes = append(u.numbers, n), append(u.sizes, size), u.bytes+size
		total += size
	}
	excess := map[uint32][]uint64{}
	for total > list.maxBytes {
		uid := largestUser(users)
		u := users[uid]
		excess[uid] = append(excess[uid], u.numbers[0])
		total -= u.sizes[0]
		u.bytes -= u.sizes[0]
		u.numbers, u.sizes = u.numbers[1:], u.sizes[1:]
	}
	return excess
}

func largestUser(users map[uint32]*userRecords) (uid uint32) {
	maxBytes := int64(-1)
	for id, u := range users {
		if u.bytes > maxBytes {
			uid, maxBytes = id, u.bytes
		}
	}
	return uid
}
