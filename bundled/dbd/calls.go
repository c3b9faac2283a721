package dbd

import (
	"sync"
	"time"

	"schedrestd/bundled/dbd/catalog"
	"schedrestd/model"
	"schedrestd/rpc/message"
)

// The type calls counts requests, by message type and by user.
type calls struct {
	since time.Time

	mu       sync.Mutex // guards the fields below
	messages map[uint32]model.CallCount
	users    map[uint32]model.CallCount // one entry for each user who has sent a request with a valid credential
}

func newCalls(now time.Time) *calls {
	return &calls{since: now, messages: map[uint32]model.CallCount{}, users: map[uint32]model.CallCount{}}
}

func (c *calls) add(t message.Type, uid uint32, duration time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	count(c.messages, uint32(t), duration)
	count(c.users, uid, duration)
}

func count(m map[uint32]model.CallCount, id uint32, duration time.Duration) {
	n := m[id]
	n.ID = id
	n.Count++
	n.Time += uint64(duration.Microseconds())
	m[id] = n
}

// snapshot returns the counts by message type, sorted by type, and the counts
// by user, sorted by uid.
func (c *calls) snapshot() (messages, users []model.CallCount) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return catalog.Sorted(c.messages), catalog.Sorted(c.users)
}
