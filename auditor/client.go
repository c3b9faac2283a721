package auditor

import (
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"sync"
	"time"

	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/rate"
	"schedrestd/service"
)

// client handles the changes of one worker.
type client struct {
	*service.Client
	audit *journal
	most  int // maximum number of concurrent changes, which exceeds the worker's concurrent requests
	// holds returns what the dispatcher reported about a connection of this
	// worker. It returns nil if the worker no longer has the connection, and an
	// error if it never had it.
	holds func(id uint64) (*ipc.Connection, error)
	ended chan struct{} // closed when all messages of the worker were handled

	mu        sync.Mutex
	asked     *rate.Bucket
	later     *rate.Bucket         // limits how many Later answers the worker may get
	under     map[uint64]*underway // by the worker's number of the change
	hasExited bool

	unfair uint // how often the worker got the answer Later so that changes are left for other workers
}

// underway is a change whose intent was received, and whose outcome is not
// known yet.
type underway struct {
	change
	granted bool
}

// Limits on the intents of a worker. An honest worker does not reach
// changeRate, because the daemons are slower. The intents of a worker that
// exceeds it would only fill the disk with false lines, so they get the answer
// Later.
const (
	changeBurst = 2000
	changeRate  = 1000   // per second
	laterRate   = 20_000 // per second; a worker that sends more intents is killed
)

func newClient(a *journal, c *service.Client, holds func(uint64) (*ipc.Connection, error)) *client {
	return &client{Client: c, audit: a, most: 2*int(c.Requests) + 16, holds: holds, ended: make(chan struct{}),
		asked: rate.New(changeBurst, changeRate, time.Now()), later: rate.New(laterRate, laterRate, time.Now()), under: map[uint64]*underway{}}
}

// handle handles messages about changes. It never waits for the log. The result
// done is false if m is not about changes.
func (a *client) handle(m ipc.Message) (done bool, err error) {
	if a.audit == nil { // this auditor keeps only Idempotency-Keys
		return false, nil
	}
	switch m := m.(type) {
	case *query.Intent:
		return true, a.intend(m)
	case *query.Outcome:
		return true, a.outcome(m)
	}
	return false, nil
}

// intend queues the line of an intent. If the client's connection has ended in
// the meantime, intend refuses the change, because no client waits for it.
func (a *client) intend(m *query.Intent) error {
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
		u = &underway{change: change{facts: *facts, worker: a.Client.Client, said: m, id: a.audit.name()}}
		a.under[m.ID] = u
	}
	tooOften := !affordable && !a.later.Take(now, 1)
	a.mu.Unlock()
	switch {
	case twice:
		return fmt.Errorf("sent Intent %d twice", m.ID)
	case full:
		return fmt.Errorf("sent Intent for more changes than it can have requests")
	case tooOften:
		return errors.New("sent Intent too often")
	case !affordable:
		a.audit.counts.later.add(1)
		a.say(m.ID, query.Later)
		return nil
	case facts == nil:
		a.say(m.ID, query.Withheld)
		return nil
	case !fair:
		a.audit.counts.later.add(1)
		if a.unfair++; bits.OnesCount(a.unfair) == 1 { // log the first, the second, the fourth time and so on
			slog.Warn("worker holds too many changes without an outcome",
				"client", a.Number, "client_pid", a.PID, "client_uid", a.UID, "under_way", under, "told_to_come_later_so_far", a.unfair)
		}
		a.say(m.ID, query.Later)
		return nil
	}
	unmade := func() []byte {
		return u.change.outcome(a.audit.now(), endNotMade, "its intent was not written in time", nil)
	}
	a.audit.intend(u.intent(a.audit.now()), unmade, func(granted bool) { a.answer(m.ID, u, granted) })
	return nil
}

// answer sends the worker the decision on its change: granted or refused. It
// runs in the journal's goroutine or in a timer.
func (a *client) answer(id uint64, u *underway, granted bool) {
	a.mu.Lock()
	leave := query.Withheld
	switch {
	case !granted:
		a.audit.counts.refused.add(1)
		delete(a.under, id)
	case a.hasExited: // the worker has exited before it got the answer
		a.audit.settle(u.change.outcome(a.audit.now(), endNotMade, "its worker exited before it was granted", nil))
	default:
		a.audit.counts.granted.add(1)
		leave, u.granted = query.Granted, true
	}
	a.mu.Unlock()
	a.say(id, leave)
}

// outcome queues the line of the outcome of a granted change.
func (a *client) outcome(m *query.Outcome) error {
	a.mu.Lock()
	u := a.under[m.ID]
	ok := u != nil && u.granted
	if ok {
		delete(a.under, m.ID)
	}
	a.mu.Unlock()
	if !ok {
		return fmt.Errorf("sent Outcome for change %d, which was not granted", m.ID)
	}
	a.audit.settle(u.change.outcome(a.audit.now(), endReported, "", m))
	return nil
}

// exited ends the changes that the worker left open when it exited. Their
// outcome is unknown.
func (a *client) exited(why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hasExited = true
	for id, u := range a.under {
		if u.granted {
			a.audit.settle(u.change.outcome(a.audit.now(), endUnknown, why, nil))
			delete(a.under, id)
		}
	}
}

func (a *client) say(id uint64, leave query.Leave) { a.Answer(&query.Noted{ID: id, Leave: leave}) }
