package dispatch

import (
	"time"

	"schedrestd/gateway/dispatcher/pool"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// A Names records which uids have user names. It asks the resolver, and does
// not wait for the answers.
type Names struct {
	*pool.Loop
	Send   func(ipc.Message, ...int) error // sends a question to the resolver
	cache  map[uint32]uidState
	byID   map[uint64]*inquiry // unanswered questions by their number
	byUID  map[uint32]*inquiry // unanswered questions by uid
	lastID uint64
}

// A uidState records whether a uid has a name, and when this information
// expires.
type uidState struct {
	named   bool
	expires time.Time
}

// inquiry is a question to the resolver.
type inquiry struct {
	uid       uint32
	timer     *time.Timer
	callbacks []func(named, sure bool)
}

const (
	nameTTL   = time.Minute
	maxNames  = 10_000           // a cache with this number of uids is cleared before the next uid is added
	nameLimit = 10 * time.Second // a question that has no answer after this time has failed; the resolver's look-ups take less
)

// NewNames returns a Names without any questions or answers.
func NewNames(l *pool.Loop) *Names {
	return &Names{Loop: l, cache: map[uint32]uidState{}, byID: map[uint64]*inquiry{}, byUID: map[uint32]*inquiry{}}
}

// cached reports whether uid has a name. If this is not known, known is false.
func (n *Names) cached(uid uint32) (named, known bool) {
	v, ok := n.cache[uid]
	return v.named, ok && time.Now().Before(v.expires)
}

// lookup finds out whether uid has a name, and calls callback with the result.
// It does so at once if the answer is cached, and otherwise when the resolver
// has answered. If sure is false, the user database is unavailable.
func (n *Names) lookup(uid uint32, callback func(named, sure bool)) {
	if named, ok := n.cached(uid); ok {
		callback(named, true)
		return
	}
	if i := n.byUID[uid]; i != nil {
		i.callbacks = append(i.callbacks, callback)
		return
	}
	n.lastID++
	id := n.lastID
	i := &inquiry{uid: uid, callbacks: []func(bool, bool){callback}}
	i.timer = n.After(nameLimit, func() { n.answer(id, false, false) })
	n.byID[id], n.byUID[uid] = i, i
	if n.Send(&work.Lookup{ID: id, Number: uid}) != nil {
		n.answer(id, false, false)
	}
}

// Handle passes an answer from the resolver to the loop. An answer that comes
// too late is ignored.
func (n *Names) Handle(m ipc.Message) (handled bool) {
	switch m := m.(type) {
	case *work.LookupResult:
		n.Do(func() { n.answer(m.ID, m.Name != "", m.Available) })
		return true
	}
	return false
}

// answer passes an answer to all functions that wait for it, and forgets the
// question.
func (n *Names) answer(id uint64, named, sure bool) {
	i := n.byID[id]
	if i == nil {
		return
	}
	i.timer.Stop()
	delete(n.byID, id)
	delete(n.byUID, i.uid)
	if sure {
		if len(n.cache) >= maxNames {
			clear(n.cache)
		}
		n.cache[i.uid] = uidState{named, time.Now().Add(nameTTL)}
	}
	for _, callback := range i.callbacks {
		callback(named, sure)
	}
}

// Fail answers all questions with sure set to false. It must be called when the
// resolver has exited.
func (n *Names) Fail() {
	for id := range n.byID {
		n.answer(id, false, false)
	}
}
