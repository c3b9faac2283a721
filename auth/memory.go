package auth

import (
	"maps"
	"sync"
	"time"
)

const (
	remembered   = 60 * time.Second // maximum; within this time a gateway may not notice that a daemon's key has changed
	mostRemember = 4096             // an entry takes about 150 bytes
)

// memory remembers positive answers for a while. The zero memory is empty.
type memory[Of comparable] struct {
	mu       sync.Mutex
	until    map[Of]time.Time
	takeback uint64 // number of removals of entries
}

func (m *memory[Of]) has(it Of, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Before(m.until[it])
}

// asking returns the number of removals so far. Call it before a question is
// sent. When the answer has arrived, pass the returned value to add, as the
// argument asked.
func (m *memory[Of]) asking() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.takeback
}

// add remembers an acceptance until the token expires, but for at most a
// minute. It does nothing if any entry was removed after the question was sent.
// The removal means that a daemon has refused a credential, probably because
// the daemon's keys have changed. The answer may still be based on the previous
// keys. If the memory is full, add removes other entries, beginning with
// expired ones. The tokens of removed entries have to be verified again.
func (m *memory[Of]) add(it Of, expires, now time.Time, asked uint64) {
	// The end is computed from now, which includes the monotonic clock. If the
	// end were the token's expiry, setting the clock back would postpone it.
	lasts := min(remembered, expires.Sub(now))
	m.mu.Lock()
	defer m.mu.Unlock()
	if lasts <= 0 || asked != m.takeback {
		return
	}
	if m.until == nil {
		m.until = map[Of]time.Time{}
	}
	if len(m.until) >= mostRemember {
		m.evict(now)
	}
	m.until[it] = now.Add(lasts)
}

// evict removes expired entries, and then others until an eighth of the memory
// is free. It visits every entry, which would be too slow for every add.
func (m *memory[Of]) evict(now time.Time) {
	maps.DeleteFunc(m.until, func(_ Of, until time.Time) bool { return !now.Before(until) })
	for it := range m.until {
		if len(m.until) <= mostRemember*7/8 {
			return
		}
		delete(m.until, it)
	}
}

func (m *memory[Of]) drop(it Of) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.takeback++
	delete(m.until, it)
}
