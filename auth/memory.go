package auth

import (
	"crypto/sha256"
	"maps"
	"sync"
	"time"
)

const (
	remembered   = 60 * time.Second // at the most: so long may a gateway not notice that a daemon's key changed
	mostRemember = 4096             // one entry has about 150 bytes
)

// vouched is one yes: who said it, of which token, acting as whom. The token itself is not kept.
type vouched struct {
	daemon string
	token  [sha256.Size]byte
	actAs  string
}

func hashOf(token string) [sha256.Size]byte { return sha256.Sum256([]byte(token)) }

// memory is the yeses that still count. The zero memory is empty.
type memory struct {
	mu    sync.Mutex
	until map[vouched]time.Time
}

func (m *memory) has(v vouched, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Before(m.until[v])
}

// add remembers v until the token's end, and no longer than a minute. In a full memory some
// others give way, those first that count no more: their tokens are asked about again.
func (m *memory) add(v vouched, expires, now time.Time) {
	until := now.Add(remembered)
	if expires.Before(until) {
		until = expires
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.until == nil {
		m.until = map[vouched]time.Time{}
	}
	if len(m.until) >= mostRemember {
		m.makeRoom(now)
	}
	m.until[v] = until
}

// makeRoom takes out what counts no more, and any others until an eighth is free: it looks at every
// entry, which must not happen each time.
func (m *memory) makeRoom(now time.Time) {
	maps.DeleteFunc(m.until, func(_ vouched, until time.Time) bool { return !now.Before(until) })
	for v := range m.until {
		if len(m.until) <= mostRemember*7/8 {
			return
		}
		delete(m.until, v)
	}
}

func (m *memory) drop(v vouched) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.until, v)
}

func (m *memory) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.until)
}
