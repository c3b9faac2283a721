package auditor

import (
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"sync"
	"time"

	"schedrestd/gateway/service"
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// client handles the changes of one worker.
type client struct {
	*service.Client
	audit   *journal
	maxOpen int // maximum number of open changes; higher than the limit on the worker's concurrent requests
	// facts returns the dispatcher's facts about a connection of this worker.
	// It returns nil if the worker no longer has the connection, and an error
	// if the worker never had it.
	facts func(id uint64) (*ipc.Connection, error)
	done  chan struct{} // closed when all messages of the worker have been handled

	mu        sync.Mutex // guards the fields up to hasExited
	quota     *rate.Bucket
	excess    *rate.Bucket           // limits intents that exceed quota and therefore get the answer TryLater
	open      map[uint64]*openChange // by the worker's number of the change
	hasExited bool

	deferrals uint // intents that got the answer TryLater because too little of the shared limit was left
}

// openChange is a change that the worker has announced, but whose outcome the
// worker has not reported yet.
type openChange struct {
	change
	granted bool
}

func newClient(a *journal, c *service.Client, facts func(uint64) (*ipc.Connection, error)) *client {
	return &client{Client: c, audit: a, maxOpen: 2*int(c.Requests) + 16, facts: facts, done: make(chan struct{}),
		quota:  rate.New(limit.Intents, time.Now()),
		excess: rate.New(limit.IntentRetries, time.Now()), open: map[uint64]*openChange{}}
}

// handle handles messages about changes. It never waits for the log. handled is
// false if m is not about changes.
func (a *client) handle(m ipc.Message) (handled bool, err error) {
	if a.audit == nil { // this auditor keeps only Idempotency-Keys
		return false, nil
	}
	switch m := m.(type) {
	case *query.Intent:
		return true, a.handleIntent(m)
	case *query.Outcome:
		return true, a.handleOutcome(m)
	}
	return false, nil
}

// handleIntent queues the log line for a change that the worker announces. If
// the client's connection has closed in the meantime, handleIntent refuses the
// change, because the client no longer waits for the result.
func (a *client) handleIntent(m *query.Intent) error {
	facts, err := a.facts(m.Connection)
	if err != nil {
		return err
	}
	a.mu.Lock()
	_, duplicate := a.open[m.ID]
	open := len(a.open)
	full := open >= a.maxOpen
	now := time.Now()
	withinQuota := a.quota.Take(now, 1)
	fair := a.audit.mayBegin(open)
	var u *openChange
	if facts != nil && !duplicate && !full && withinQuota && fair {
		u = &openChange{change: change{facts: *facts, worker: a.WorkerChannel, msg: m, id: a.audit.nextID()}}
		a.open[m.ID] = u
	}
	tooOften := !withinQuota && !a.excess.Take(now, 1)
	a.mu.Unlock()
	switch {
	case duplicate:
		return fmt.Errorf("sent Intent %d twice", m.ID)
	case full:
		return errors.New("sent Intent for more changes than it can have requests")
	case tooOften:
		return errors.New("sent Intent too often")
	case !withinQuota:
		a.audit.counts.deferred.add(1)
		a.reply(m.ID, query.TryLater)
		return nil
	case facts == nil:
		a.reply(m.ID, query.Denied)
		return nil
	case !fair:
		a.audit.counts.deferred.add(1)
		if a.deferrals++; bits.OnesCount(a.deferrals) == 1 { // the first, second, fourth, eighth time and so on
			slog.Warn("worker holds too many changes without an outcome",
				"client", a.Number, "client_pid", a.PID, "client_uid", a.UID, "pending", open, "deferred_so_far", a.deferrals)
		}
		a.reply(m.ID, query.TryLater)
		return nil
	}
	notMade := func() []byte {
		return u.change.outcomeLine(a.audit.now(), endNotMade, "its intent was not written in time", nil)
	}
	a.audit.queueIntent(u.intentLine(a.audit.now()), notMade, func(granted bool) { a.sendDecision(m.ID, u, granted) })
	return nil
}

// sendDecision informs the worker whether the change is granted. It runs in the
// journal's goroutine, a timer's goroutine, or the goroutine that handles the
// worker's messages.
func (a *client) sendDecision(id uint64, u *openChange, granted bool) {
	a.mu.Lock()
	decision := query.Denied
	switch {
	case !granted:
		a.audit.counts.refused.add(1)
		delete(a.open, id)
	case a.hasExited: // the worker never got the answer, so it has not made the change
		a.audit.queueOutcome(u.change.outcomeLine(a.audit.now(), endNotMade, "its worker exited before it was granted", nil))
	default:
		a.audit.counts.granted.add(1)
		decision, u.granted = query.Granted, true
	}
	a.mu.Unlock()
	a.reply(id, decision)
}

// handleOutcome queues the log line for the outcome of a granted change.
func (a *client) handleOutcome(m *query.Outcome) error {
	a.mu.Lock()
	u := a.open[m.ID]
	ok := u != nil && u.granted
	if ok {
		delete(a.open, m.ID)
	}
	a.mu.Unlock()
	if !ok {
		return fmt.Errorf("sent Outcome for change %d, which was not granted", m.ID)
	}
	a.audit.queueOutcome(u.change.outcomeLine(a.audit.now(), endReported, "", m))
	return nil
}

// handleExit records the outcome "unknown" for the changes that the worker left
// open when it exited.
func (a *client) handleExit(reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hasExited = true
	for id, u := range a.open {
		if u.granted {
			a.audit.queueOutcome(u.change.outcomeLine(a.audit.now(), endUnknown, reason, nil))
			delete(a.open, id)
		}
	}
}

func (a *client) reply(id uint64, decision query.Decision) {
	a.Answer(&query.IntentDecision{ID: id, Decision: decision})
}
