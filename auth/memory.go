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
type memory[Of comparable] struct {
	mu       sync.Mutex
	expiry   map[Of]time.Time
	removals uint64 // number of removals of entries
}

func (m *memory[Of]) has(key Of, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Before(m.expiry[key])
}

// removalCount returns the number of removals so far. Call it before a question is
// sent. When the answer has arrived, pass the returned value to add, as the
// argument asked.
func (m *memory[Of]) removalCount() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.removals
}

// add remembers an acceptance until the token expires, but for at most a
// minute. It does nothing if any entry was removed after the question was sent.
// The removal means that a daemon has refused a credential, probably because
// the daemon's keys have changed. The answer may still be based on the previous
// keys. If the memory is full, add removes other entries, beginning with
// expired ones. The tokens of removed entries have to be verified again.
func (m *memory[Of]) add(key Of, expires, now time.Time, removals uint64) {
	// The end is computed from now, which includes the monotonic clock. If the
	// end were the token's expiry, setting the clock back would postpone it.
	lifetime := min(memoryTTL, expires.Sub(now))
	m.mu.Lock()
	defer m.mu.Unlock()
	if lifetime <= 0 || removals != m.removals {
		return
	}
	if m.expiry == nil {
		m.expiry = map[Of]time.Time{}
	}
	if len(m.expiry) >= maxRemembered {
		m.evict(now)
	}
	m.expiry[key] = now.Add(lifetime)
}

// evict removes expired entries, and then others until an eighth of the memory
// is free. It visits every entry, which would be too slow for every add.
func (m *memory[Of]) evict(now time.Time) {
	maps.DeleteFunc(m.expiry, func(_ Of, expiry time.Time) bool { return !now.Before(expiry) })
	for key := range m.expiry {
		if len(m.expiry) <= maxRemembered*7/8 {
			return
		}
		delete(m.expiry, key)
	}
}

func (m *memory[Of]) drop(key Of) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.removals++
	delete(m.expiry, key)
}
