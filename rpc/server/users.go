package server

import (
	"sync"

	"schedrestd/errs"
)

// userCount bounds how many connections one local user holds, and all of them together,
// so that no one locks the others out, and all of them no Super.
type userCount struct {
	most, each int
	super      func(uid uint32) bool

	mu    sync.Mutex
	total int
	held  map[uint32]int
}

func (u *userCount) take(uid uint32) bool {
	if u.super(uid) {
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.held[uid] >= u.each || u.total >= u.most {
		return false
	}
	u.held[uid]++
	u.total++
	return true
}

// give takes c off the count that take put it on.
func (u *userCount) give(c *conn) {
	if !c.local || u.super(c.peer.UID) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.total--
	if u.held[c.peer.UID]--; u.held[c.peer.UID] == 0 {
		delete(u.held, c.peer.UID)
	}
}

// budget bounds how many bytes are held at a time, in total and for one user: of requests in memory, of
// answers on disk. They are counted before they are held.
type budget struct {
	most, each int
	super      func(uid uint32) bool
	what       string // that there are too many of, for the refusal

	mu    sync.Mutex
	total int
	held  map[uint32]int
}

// take counts n bytes of uid's in, until give is called.
func (b *budget) take(uid uint32, n int) (give func(), err error) {
	if b.super(uid) {
		return func() {}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held[uid]+n > b.each || b.total+n > b.most {
		return nil, errs.New(errs.TooMany, "too many %s at a time", b.what)
	}
	b.held[uid] += n
	b.total += n
	return func() { b.release(uid, n) }, nil
}

// release counts n bytes of uid's out.
func (b *budget) release(uid uint32, n int) {
	if b.super(uid) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total -= n
	if b.held[uid] -= n; b.held[uid] == 0 {
		delete(b.held, uid)
	}
}
