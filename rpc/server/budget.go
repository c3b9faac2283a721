package server

import (
	"sync"

	"schedrestd/internal/errs"
)

// A budget limits either how many bytes of requests are stored in memory, or
// how many bytes of answers are stored on disk. It has a limit for the total
// and a limit for each user. Bytes are counted before they are stored.
type budget struct {
	maxTotal, maxPerUser int
	super                func(uid uint32) bool
	resource             string // kind of bytes, for the error

	mu      sync.Mutex
	total   int
	perUser map[uint32]int
}

// reserve counts n bytes as used by the user with this uid, until the caller
// calls release.
func (b *budget) reserve(uid uint32, n int) (release func(), err error) {
	if b.super(uid) {
		return func() {}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.perUser[uid]+n > b.maxPerUser || b.total+n > b.maxTotal {
		return nil, errs.New(errs.TooMany, "too many concurrent %s", b.resource)
	}
	b.perUser[uid] += n
	b.total += n
	return func() { b.release(uid, n) }, nil
}

// release stops counting n bytes for uid.
func (b *budget) release(uid uint32, n int) {
	if b.super(uid) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total -= n
	if b.perUser[uid] -= n; b.perUser[uid] == 0 {
		delete(b.perUser, uid)
	}
}
