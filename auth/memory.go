package auth

import (
	"maps"
	"sync"
	"time"
)

const (
	remembered   = 60 * time.Second // at the most: so long may a gateway not notice that a daemon's key changed
	mostRemember = 4096             // one entry has about 150 bytes
)

// memory is the yeses that still count, by what they were said of. The zero memory is empty.
type memory[Of comparable] struct {
	mu       sync.Mutex
	until    map[Of]time.Time
	takeback uint64 // how often something was taken back
}

func (m *memory[Of]) has(it Of, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Before(m.until[it])
}

// asking is to be given to add by who is about to ask.
func (m *memory[Of]) asking() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.takeback
}

// add remembers it until the token's end, and no longer than a minute. A yes that was asked for before
// anything was taken back is not remembered: it may be of the keys of before. In a full memory some
// others give way, those first that count no more: their tokens are asked about again.
func (m *memory[Of]) add(it Of, expires, now time.Time, asked uint64) {
	// Counted from now, whatever becomes of the clock: a token's end alone would move with one that is set back.
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
		m.makeRoom(now)
	}
	m.until[it] = now.Add(lasts)
}

// makeRoom takes out what counts no more, and any others until an eighth is free: it looks at every
// entry, which must not happen each time.
func (m *memory[Of]) makeRoom(now time.Time) {
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
