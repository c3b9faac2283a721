package worker

import (
	"sync"
	"time"

	"schedrestd/api"
	"schedrestd/errs"
)

// users names users and groups by the system's own databases, which the parent asks. A list asks for the
// same few names in every row, so they are kept; and a directory service that does
// not answer costs one row its time limit, not every row: until it has had a pause,
// unknown numbers stay numbers.
type users struct {
	user, group names
}

// names is one database by number.
type names struct {
	look  func(uint32) (string, error)
	plain func(uint32) string // the number, for one that has no name
	now   func() time.Time

	mu    sync.Mutex
	known map[uint32]name
	mute  time.Time // nobody is asked before
}

type name struct {
	text  string
	until time.Time
}

const (
	keepNames = time.Minute
	muteNames = 30 * time.Second
	maxNames  = 10_000 // past it all are forgotten
)

func newUsers(e *Errands) *users {
	return &users{
		user:  names{plain: api.Numbers{}.User, now: time.Now, look: func(uid uint32) (string, error) { return e.name(false, uid) }},
		group: names{plain: api.Numbers{}.Group, now: time.Now, look: func(gid uint32) (string, error) { return e.name(true, gid) }},
	}
}

// User is the name of uid, or the number in decimal.
func (u *users) User(uid uint32) string { return u.user.of(uid) }

// Group is the name of gid, or the number in decimal.
func (u *users) Group(gid uint32) string { return u.group.of(gid) }

func (n *names) of(id uint32) string {
	now := n.now()
	n.mu.Lock()
	kept, ok := n.known[id]
	mute := now.Before(n.mute)
	n.mu.Unlock()
	if ok && now.Before(kept.until) {
		return kept.text
	}
	if mute {
		return n.plain(id)
	}
	text, err := n.look(id)
	if err != nil || text == "" {
		text = n.plain(id)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil && errs.KindOf(err) != errs.NotFound {
		n.mute = n.now().Add(muteNames)
		return text
	}
	if n.known == nil || len(n.known) >= maxNames {
		n.known = map[uint32]name{}
	}
	n.known[id] = name{text, now.Add(keepNames)}
	return text
}
