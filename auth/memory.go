package auth

import (
	"maps"
	"sync"
	"time"
)

const (
	memoryTTL     = 60 * time.Second // maximum; within this time a gateway may not notice that a daemon's key has changed
	maxRemembered = 4096             // an entry takes about 150 bytes
)

// memory remembers positive answers for a while. The zero memory is empty.
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

// removalCount returns the number of calls of drop so far. Call it before a
// question is sent. When the answer has arrived, pass the returned value to
// add, as the argument removals.
func (m *memory[K]) removalCount() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.removals
}

// add remembers an acceptance until the token expires, but for at most
// memoryTTL. It does nothing if any entry was removed after the question was
// sent. A removal means that a daemon has refused a credential, probably
// because the daemon's keys have changed. The answer may still be based on the
// previous keys. If the memory is full, add removes other entries, beginning
// with expired ones. The tokens of removed entries have to be verified again.
func (m *memory[K]) add(key K, expires, now time.Time, removals uint64) {
	// The end is computed from now, which includes the monotonic clock.
	// Otherwise setting the clock back would postpone the end.
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

// evict removes expired entries, and then others until an eighth of the memory
// is free. It visits every entry, which would be too slow for every add.
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
