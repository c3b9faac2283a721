package auth

import (
	"maps"
	"sync"
	"time"
)

const (
	remembered   = 60 * time.Second // at most: for this long a gateway may not notice that a daemon's key changed
	mostRemember = 4096             // one entry has about 150 bytes
)

// memory remembers positive answers for a while. The zero memory is empty.
type memory[Of comparable] struct {
	mu       sync.Mutex
	until    map[Of]time.Time
	takeback uint64 // how often an entry was dropped
}

func (m *memory[Of]) has(it Of, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Before(m.until[it])
}

// asking returns a value for add. Call it before the question is asked.
func (m *memory[Of]) asking() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.takeback
}

// add remembers an answer until the token expires, and for a minute at most. An
// answer to a question that was asked before an entry was dropped is not
// remembered: it may be based on the previous keys. A full memory forgets other
// entries, expired ones first; their tokens are asked about again.
func (m *memory[Of]) add(it Of, expires, now time.Time, asked uint64) {
	// Counted from now: the token's expiry alone would move when the clock is
	// set back.
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

// evict removes expired entries, and any others until an eighth is free. It
// looks at every entry, which must not happen for each add.
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
