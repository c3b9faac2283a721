package server

import (
	"os"
	"sync"
)

// userCount bounds how many connections one local user holds, so that he can't
// lock everybody else out. Root and our own user could stop us anyway.
type userCount struct {
	most int

	mu   sync.Mutex
	held map[uint32]int
}

func free(uid uint32) bool { return uid == 0 || uid == uint32(os.Geteuid()) }

func (u *userCount) take(uid uint32) bool {
	if free(uid) {
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.held[uid] >= u.most {
		return false
	}
	u.held[uid]++
	return true
}

// give takes c off the count that take put it on.
func (u *userCount) give(c *conn) {
	if !c.local || free(c.peer.UID) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.held[c.peer.UID]--; u.held[c.peer.UID] == 0 {
		delete(u.held, c.peer.UID)
	}
}
