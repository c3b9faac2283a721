package penalty

import "hash/maphash"

// Memory remembers rejected credentials, so that a client that repeats one
// credential is not punished like a client that guesses many. An attacker gains
// nothing by alternating between credentials, because each different credential
// counts as a guess.
//
// A Memory stores a limited number of hashes of credentials. Only the same
// Memory can compute these hashes. If the Memory is full, each new hash
// displaces an arbitrary one. A credential whose hash was displaced counts as
// new again. A Memory has no lock.
type Memory struct {
	seed   maphash.Seed
	size   int
	hashes map[uint64]struct{}
}

// NewMemory returns an empty memory with the size of a row.
func NewMemory(row Row) *Memory {
	return &Memory{seed: maphash.MakeSeed(), size: row.Size, hashes: map[uint64]struct{}{}}
}

// Add stores the hash of a credential, and reports whether it is new.
func (m *Memory) Add(credential uint64) bool {
	key := maphash.Comparable(m.seed, credential)
	if _, ok := m.hashes[key]; ok {
		return false
	}
	if len(m.hashes) >= m.size {
		for victim := range m.hashes {
			delete(m.hashes, victim)
			break
		}
	}
	m.hashes[key] = struct{}{}
	return true
}
