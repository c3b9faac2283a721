package auth

import (
	"maps"
	"sync"
	"time"
)

const (
	memoryTTL     = 60 * time.Second // maximum; if a daemon's key changes, the gateway may not notice it for this long
	maxRemembered = 4096             // an entry takes about 150 bytes
)

// A memory remembers for a while which credentials got a certain answer. The
// zero memory is empty.
type memory[K comparable] struct {
	mu       sync.Mutex
	expiry   map[K]time.Time
	removals uint64 // number of calls of drop
}

func (m *memory[K]) has(key K, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Before(m.expiry[key])
}

// removalCount returns the number of calls of drop so far. Call it before
// verifying a credential, and pass its result to add when the answer is known.
func (m *memory[K]) removalCount() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.removals
}

// add remembers an answer until the given expiry, but at most for memoryTTL. It
// does nothing if drop was called after the verification began (see
// removalCount). Such a call means that a daemon has refused a credential,
// probably because the daemon's keys have changed. So the answer may be based
// on the previous keys. If the memory is full, add removes other entries,
// beginning with expired ones. Their tokens will be verified again.
func (m *memory[K]) add(key K, expires, now time.Time, removals uint64) {
	// The expiry is a time on the monotonic clock. So setting the clock back
	// does not postpone it.
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

// evict removes the expired entries. If this is not enough, it removes other
// entries until an eighth of the memory is free. It visits every entry, so it
// would be too slow to run in every call of add.
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
