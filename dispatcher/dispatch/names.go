package dispatch

import (
	"time"

	"schedrestd/dispatcher/pool"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// Names records which uids have names, according to the resolver. The
// dispatcher asks the resolver only about uids, and does not wait for its
// answers. It needs to know only whether there is a name.
type Names struct {
	*pool.Loop
	Send  func(ipc.Message, ...int) error // sends a question to the resolver
	known map[uint32]uidState
	asked map[uint64]*inquiry // questions by their number
	by    map[uint32]*inquiry // questions by uid
	last  uint64
}

// uidState records whether a uid has a name, and until when the record is
// valid.
type uidState struct {
	named bool
	until time.Time
}

// inquiry is a question to the resolver.
type inquiry struct {
	uid  uint32
	late *time.Timer
	then []func(named, sure bool)
}

const (
	keepNames = time.Minute
	maxNames  = 10_000           // when this number is reached, all names are forgotten
	nameLimit = 10 * time.Second // longer than the resolver takes
)

// NewNames returns a Names without any questions or answers.
func NewNames(l *pool.Loop) *Names {
	return &Names{Loop: l, known: map[uint32]uidState{}, asked: map[uint64]*inquiry{}, by: map[uint32]*inquiry{}}
}

// kept returns whether uid has a name, if that is known.
func (n *Names) kept(uid uint32) (named, known bool) {
	v, ok := n.known[uid]
	return v.named, ok && time.Now().Before(v.until)
}

// lookup finds out whether uid has a name, and passes the answer to a callback,
// the parameter then. It calls the callback at once if the answer is known,
// otherwise when the resolver has answered. The argument sure is false if the
// user database is unavailable.
func (n *Names) lookup(uid uint32, then func(named, sure bool)) {
	if named, ok := n.kept(uid); ok {
		then(named, true)
		return
	}
	if i := n.by[uid]; i != nil {
		i.then = append(i.then, then)
		return
	}
	n.last++
	id := n.last
	i := &inquiry{uid: uid, then: []func(bool, bool){then}}
	i.late = n.After(nameLimit, func() { n.answer(id, false, false) })
	n.asked[id], n.by[uid] = i, i
	if n.Send(&work.Lookup{ID: id, Number: uid}) != nil {
		n.answer(id, false, false)
	}
}

// Handle passes an answer of the resolver to the loop. An answer that comes too
// late is ignored.
func (n *Names) Handle(m ipc.Message) (done bool, err error) {
	switch m := m.(type) {
	case *work.LookupResult:
		n.Do(func() { n.answer(m.ID, m.Name != "", m.Sure) })
		return true, nil
	}
	return false, nil
}

// answer passes an answer to all functions that wait for it, and removes the
// question.
func (n *Names) answer(id uint64, named, sure bool) {
	i := n.asked[id]
	if i == nil {
		return
	}
	i.late.Stop()
	delete(n.asked, id)
	delete(n.by, i.uid)
	if sure {
		if len(n.known) >= maxNames {
			clear(n.known)
		}
		n.known[i.uid] = uidState{named, time.Now().Add(keepNames)}
	}
	for _, then := range i.then {
		then(named, sure)
	}
}

// Fail ends all questions as failed, because the resolver has exited.
func (n *Names) Fail() {
	for id := range n.asked {
		n.answer(id, false, false)
	}
}
