package privsep

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"schedrestd/ipc"
	"schedrestd/rate"
)

// auditor hears what one worker says of changes. A nil one is of a gateway without an audit log, whose workers
// have nothing to say.
type auditor struct {
	audit  *audit
	worker *process
	uid    uint32
	most   int // changes under way at one time: more than it answers requests
	// holds is what the parent knows of a connection of this worker. It is nil for one that the worker no longer
	// has; an error says that the worker lies.
	holds func(id uint64) (*ipc.Connection, error)

	mu     sync.Mutex
	asked  *rate.Bucket
	later  *rate.Bucket         // how often it may be told to come later
	under  map[uint64]*underway // by the worker's number
	buried bool

	unfair *tally // what it was told to do later for the others' sake
}

// underway is a change between its intent and its outcome.
type underway struct {
	change
	granted bool
}

// An honest worker's changes have a daemon to wait for. What asks for more leave than that fills the disk with
// lies, and is told to come later.
const (
	changeBurst = 2000
	changeRate  = 1000   // a second
	laterRate   = 20_000 // a second; who does not stop asking is ended
)

func newAuditor(a *audit, worker *process, uid uint32, requests int, holds func(uint64) (*ipc.Connection, error)) *auditor {
	if a == nil {
		return nil
	}
	return &auditor{audit: a, worker: worker, uid: uid, most: 2*requests + 16, holds: holds,
		asked: rate.New(changeBurst, changeRate, time.Now()), later: rate.New(laterRate, laterRate, time.Now()), under: map[uint64]*underway{}, unfair: newTally()}
}

// hear takes what is about changes. It never waits for the log. done is false when the message is none of them.
func (a *auditor) hear(m ipc.Message) (done bool, err error) {
	switch m := m.(type) {
	case *ipc.Intent:
		return true, a.intend(m)
	case *ipc.Outcome:
		return true, a.outcome(m)
	}
	return false, nil
}

// intend has the line of an intent written. A connection that ended meanwhile has nobody who waits for the change.
func (a *auditor) intend(m *ipc.Intent) error {
	if a == nil {
		return errors.New("it said Intent, and there is no audit log")
	}
	facts, err := a.holds(m.Connection)
	if err != nil {
		return err
	}
	a.mu.Lock()
	_, twice := a.under[m.ID]
	under := len(a.under)
	full := under >= a.most
	now := time.Now()
	affordable := a.asked.Take(now, 1)
	fair := a.audit.isFair(under)
	var u *underway
	if facts != nil && !twice && !full && affordable && fair {
		u = &underway{change: change{facts: *facts, worker: a.worker, uid: a.uid, said: m, id: a.audit.name()}}
		a.under[m.ID] = u
	}
	tooOften := !affordable && !a.later.Take(now, 1)
	a.mu.Unlock()
	switch {
	case twice:
		return fmt.Errorf("it said Intent %d twice", m.ID)
	case full:
		return fmt.Errorf("it said Intent of more changes than it may answer requests")
	case tooOften:
		return errTooOften("Intent")
	case !affordable:
		a.audit.counts.later.add(1)
		return a.say(m.ID, ipc.Later)
	case facts == nil:
		return a.say(m.ID, ipc.Withheld)
	case !fair:
		a.audit.counts.later.add(1)
		if total, ok := a.unfair.add(); ok {
			a.audit.log.Warn("a worker has more changes under way than the others leave room for: it says of none what became of it",
				"pid", a.worker.pid, "uid", a.uid, "under_way", under, "told_to_come_later_so_far", total)
		}
		return a.say(m.ID, ipc.Later)
	}
	unmade := func() []byte {
		return u.change.outcome(a.audit.now(), endNotMade, "its intent was not in the log in time", nil)
	}
	a.audit.intend(u.intent(a.audit.now()), unmade, func(granted bool) { a.answer(m.ID, u, granted) })
	return nil
}

// answer tells the worker whether it may make the change. It is called by the log's goroutine, or a timer's.
func (a *auditor) answer(id uint64, u *underway, granted bool) {
	a.mu.Lock()
	leave := ipc.Withheld
	switch {
	case !granted:
		a.audit.counts.refused.add(1)
		delete(a.under, id)
	case a.buried: // it never heard of it
		a.audit.settle(u.change.outcome(a.audit.now(), endNotMade, "its worker ended before it was let through", nil))
	default:
		a.audit.counts.granted.add(1)
		leave, u.granted = ipc.Granted, true
	}
	a.mu.Unlock()
	_ = a.say(id, leave)
}

// outcome is the end of a change that was let through.
func (a *auditor) outcome(m *ipc.Outcome) error {
	if a == nil {
		return errors.New("it said Outcome, and there is no audit log")
	}
	a.mu.Lock()
	u := a.under[m.ID]
	ok := u != nil && u.granted
	if ok {
		delete(a.under, m.ID)
	}
	a.mu.Unlock()
	if !ok {
		return fmt.Errorf("it said Outcome of change %d, which was not let through", m.ID)
	}
	a.audit.settle(u.change.outcome(a.audit.now(), endReported, "", m))
	return nil
}

// bury ends what the worker has left open: nobody knows what became of it.
func (a *auditor) bury(why string) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.buried = true
	for id, u := range a.under {
		if u.granted {
			a.audit.settle(u.change.outcome(a.audit.now(), endUnknown, why, nil))
			delete(a.under, id)
		}
	}
}

func (a *auditor) say(id uint64, leave ipc.Leave) error {
	return trySay(a.worker.channel, &ipc.Noted{ID: id, Leave: leave})
}

// holds is what a worker of the pool may make changes for.
func (p *pool) holds(w *worker, id uint64) (*ipc.Connection, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c, ok := w.held[id]; ok && c.fd < 0 {
		facts := c.Connection
		return &facts, nil
	}
	for _, other := range p.workers {
		if _, ok := other.held[id]; ok {
			return nil, errNotHeld("Intent", id)
		}
	}
	if id == 0 || id > p.slots.number.Load() {
		return nil, fmt.Errorf("it said Intent for connection %d, which there never was", id)
	}
	return nil, nil
}

// holds is what the one worker may make changes for: the client that it was given, which is no number to it.
func (v *visit) holds(_ *worker, id uint64) (*ipc.Connection, error) {
	switch {
	case !v.handed || id != 0 && id != v.client.ID:
		return nil, errNotHeld("Intent", id)
	case v.served:
		return nil, nil
	}
	facts := v.client.Connection
	return &facts, nil
}
