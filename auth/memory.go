package auth

import (
	"maps"
	"sync"
	"time"
)

const (
	memoryTTL     = 60 * time.Second // maximum; the gateway may take this long to notice that a daemon's key has changed
	maxRemembered = 4096             // an entry takes about 150 bytes
)

// A memory remembers for a limited time which credentials got one particular
// answer. The zero memory is empty.
type memory[K comparable] struct {
	mu       sync.Mutex // guards the fields below
	expiry   map[K]time.Time
	removals uint64 // number of calls of drop
}

func (m *memory[K]) has(key K, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Before(m.expiry[key])
}

// removalCount returns the number of calls to drop so far. Call removalCount
// before verifying a credential, and pass the result to add when the answer is
// known.
func (m *memory[K]) removalCount() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.removals
}

// add remembers an answer until the given expiry, but for at most memoryTTL. It
// does nothing if drop was called after the verification began (see
// removalCount). Such a call means that a daemon has refused a credential,
// probably because the daemon's keys have changed. In that case the answer may
// be based on the previous keys. If the memory is full, add removes other
// entries, beginning with the expired ones. The tokens of the removed entries
// will be verified again when they are next used.
func (m *memory[K]) add(key K, expires, now time.Time, removals uint64) {
	// The expiry is measured on the monotonic clock, so setting the wall clock
	// back does not postpone it.
	lifetime := min(memoryTTL, expires.Sub(now))
	m.mu.Lock()
	defer m.mu.Unlock()
	if lifetime <= 0 || removals != m.removals {
		return
	}
	if m.expiry == nil {
		m.expiry = map[K]time.Time{}
	}
	if len(m.expiry) >= maxRemembered {
		m.evict(now)
	}
	m.expiry[key] = now.Add(lifetime)
}

// evict removes the expired entries, and then other entries until at least an
// eighth of the memory is free. It visits every entry, so it would be too slow
// to run in every call to add.
func (m *memory[K]) evict(now time.Time) {
	maps.DeleteFunc(m.expiry, func(_ K, expiry time.Time) bool { return !now.Before(expiry) })
	for key := range m.expiry {
		if len(m.expiry) <= maxRemembered*7/8 {
			return
		}
		delete(m.expiry, key)
	}
}

func (m *memory[K]) drop(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.removals++
	delete(m.expiry, key)
}
