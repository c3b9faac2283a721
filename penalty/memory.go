package penalty

import "hash/maphash"

// Memory remembers which credentials were rejected, so that a client that tries
// the same one again and again is not taken for one that guesses. Alternating
// between credentials gains a guesser nothing: each new one counts once.
//
// It holds hashes with a key of its own, and a bounded number of them. In a
// full memory a new one displaces any other, which then counts once more. Its
// caller provides a lock where it needs one.
type Memory struct {
	seed maphash.Seed
	size int
	seen map[uint64]struct{}
}

// NewMemory returns an empty memory of at most size credentials.
func NewMemory(size int) *Memory {
	return &Memory{seed: maphash.MakeSeed(), size: size, seen: map[uint64]struct{}{}}
}

// Add remembers a credential by its hash, and reports whether it is a new one.
func (m *Memory) Add(credential uint64) bool {
	key := maphash.Comparable(m.seed, credential)
	if _, ok := m.seen[key]; ok {
		return false
	}
	if len(m.seen) >= m.size {
		for other := range m.seen {
			delete(m.seen, other)
			break
		}
	}
	m.seen[key] = struct{}{}
	return true
}
