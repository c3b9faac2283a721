package privsep

import (
	"sync"
	"time"

	"schedrestd/ipc"
)

// named is whether users have uids, as the resolver says. The parent asks it no other question,
// waits for no answer, and reads none but that there is a name.
type named struct {
	send func(ipc.Message, ...int) error

	mu    sync.Mutex // guards what follows
	known map[uint32]uidState
	asked map[uint64]*inquiry // by the number of the question
	by    map[uint32]*inquiry // … and by uid
	last  uint64
}

// uidState is whether a uid has a name, until it is asked for again.
type uidState struct {
	named bool
	until time.Time
}

// inquiry is a question that the resolver was asked.
type inquiry struct {
	uid  uint32
	late *time.Timer
	then []func(named, sure bool)
}

const (
	keepNames = time.Minute
	maxNames  = 10_000           // past it all are forgotten
	nameLimit = 10 * time.Second // longer than the resolver takes
)

func newNamed() *named {
	return &named{known: map[uint32]uidState{}, asked: map[uint64]*inquiry{}, by: map[uint32]*inquiry{}}
}

// kept returns what is known of uid.
func (n *named) kept(uid uint32) (named, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	v, ok := n.known[uid]
	return v.named, ok && time.Now().Before(v.until)
}

// ask asks the resolver about uid and then calls then, from another goroutine, or at once when
// there is no resolver. sure is false when the user database is unavailable.
func (n *named) ask(uid uint32, then func(named, sure bool)) {
	n.mu.Lock()
	if i := n.by[uid]; i != nil {
		i.then = append(i.then, then)
		n.mu.Unlock()
		return
	}
	n.last++
	id := n.last
	i := &inquiry{uid: uid, then: []func(bool, bool){then}}
	i.late = time.AfterFunc(nameLimit, func() { n.answer(id, false, false) })
	n.asked[id], n.by[uid] = i, i
	n.mu.Unlock()
	if n.send(&ipc.Who{ID: id, Number: uid}) != nil {
		n.answer(id, false, false)
	}
}

// hear takes an answer of the resolver's. One that comes too late answers nothing.
func (n *named) hear(m ipc.Message) (done bool, err error) {
	switch m := m.(type) {
	case *ipc.Known:
		n.answer(m.ID, m.Name != "", m.Sure)
		return true, nil
	}
	return false, nil
}

// answer ends a question.
func (n *named) answer(id uint64, named, sure bool) {
	n.mu.Lock()
	i := n.asked[id]
	if i == nil {
		n.mu.Unlock()
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
	n.mu.Unlock()
	for _, then := range i.then {
		then(named, sure)
	}
}

// fail ends every question: the resolver has exited.
func (n *named) fail() {
	n.mu.Lock()
	var list []uint64
	for id := range n.asked {
		list = append(list, id)
	}
	n.mu.Unlock()
	for _, id := range list {
		n.answer(id, false, false)
	}
}
