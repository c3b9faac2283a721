package auditor

import (
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"slices"
	"sync"
	"time"

	"schedrestd/gateway/service"
	"schedrestd/internal/keystate"
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// client handles the changes of one worker.
type client struct {
	*service.Client
	audit     *journal // nil: changes are not recorded
	ledger    *ledger  // nil: Idempotency-Keys are not kept
	perWorker bool     // the worker serves only the user whose uid it has
	maxOpen   int      // maximum number of open changes; higher than the limit on the worker's concurrent requests
	// facts returns the dispatcher's facts about a connection of this worker.
	// It returns nil if the worker no longer has the connection, and an error
	// if the worker never had it.
	facts func(id uint64) (*ipc.Connection, error)
	done  chan struct{} // closed when all messages of the worker have been handled

	mu        sync.Mutex // guards the fields up to hasExited
	quota     *rate.Bucket
	retries   *rate.Bucket           // limits the intents that exceed the quota
	open      map[uint64]*openChange // by the worker's number of the change
	hasExited bool

	deferrals  uint // intents that got the answer TryLater because too little of the shared limit was left
	claimCount int  // number of claims that the worker has made; only the ledger's goroutine uses this field
	refusals   uint // number of claims refused because the file had no room for them; only the ledger's goroutine uses this field
}

// openChange is a change that the worker has announced, but whose outcome the
// worker has not reported yet.
type openChange struct {
	change
	claim   uint64 // the store's number of the claim of its Idempotency-Key; 0 if there is none
	granted bool
}

func newClient(a *journal, l *ledger, c *service.Client, perWorker bool, facts func(uint64) (*ipc.Connection, error)) *client {
	return &client{Client: c, audit: a, ledger: l, perWorker: perWorker, maxOpen: 2*int(c.Requests) + 16, facts: facts,
		done: make(chan struct{}), quota: rate.New(limit.Intents, time.Now()), retries: rate.New(limit.IntentRetries, time.Now()), open: map[uint64]*openChange{}}
}

// handle handles messages about changes. It never waits for a file. handled is
// false if this auditor has no file for what the message announces.
func (a *client) handle(m ipc.Message) (handled bool, err error) {
	switch m := m.(type) {
	case *query.Intent:
		if keyed := len(m.Key) > 0; keyed && a.ledger == nil || !keyed && a.audit == nil {
			return false, nil
		}
		return true, a.handleIntent(m)
	case *query.Outcome:
		return true, a.handleOutcome(m)
	}
	return false, nil
}

// handleIntent claims the Idempotency-Key of a change that the worker
// announces, if it has one, and then queues its log line. If the client's
// connection has closed in the meantime, handleIntent refuses the change,
// because the client no longer waits for the result.
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
	tooOften := !withinQuota && !a.retries.Take(now, 1)
	fair := a.audit == nil || a.audit.mayBegin(open)
	var u *openChange
	if facts != nil && !duplicate && !full && withinQuota && fair {
		u = &openChange{change: change{facts: *facts, worker: a.WorkerChannel, msg: m}}
		a.open[m.ID] = u
	}
	a.mu.Unlock()
	switch {
	case duplicate:
		return fmt.Errorf("sent Intent %d twice", m.ID)
	case full:
		return errors.New("sent Intent for more changes than it can have requests")
	case tooOften:
		return errors.New("sent Intent too often")
	case !withinQuota:
		a.deferIntent(m.ID)
	case facts == nil:
		a.reply(m.ID, query.Denied)
	case !fair:
		if a.deferrals++; bits.OnesCount(a.deferrals) == 1 { // the first, second, fourth, eighth time and so on
			slog.Warn("worker holds too many changes without an outcome",
				"client", a.Number, "client_pid", a.PID, "client_uid", a.UID, "pending", open, "deferred_so_far", a.deferrals)
		}
		a.deferIntent(m.ID)
	case len(m.Key) > 0:
		a.claim(u, &m.Key[0])
	default:
		a.announce(u)
	}
	return nil
}

// deferIntent answers that the worker may ask again later.
func (a *client) deferIntent(id uint64) {
	if a.audit != nil {
		a.audit.counts.deferred.add(1)
	}
	a.reply(id, query.TryLater)
}

// announce queues the log line for a change. If changes are not recorded, it
// grants the change at once.
func (a *client) announce(u *openChange) {
	if a.audit == nil {
		a.decide(u, true)
		return
	}
	u.id = a.audit.nextID()
	notMade := func() []byte {
		return u.change.outcomeLine(a.audit.now(), endNotMade, "its intent was not written in time", nil)
	}
	a.audit.queueIntent(u.intentLine(a.audit.now()), notMade, func(granted bool) { a.decide(u, granted) })
}

// decide informs the worker whether the change is granted. If it is not, its
// Idempotency-Key becomes free. decide runs in the goroutine of the journal or
// of the ledger, a timer's goroutine, or the goroutine that handles the
// worker's messages.
func (a *client) decide(u *openChange, granted bool) {
	a.mu.Lock()
	exited := a.hasExited
	if u.granted = granted && !exited; !u.granted {
		delete(a.open, u.msg.ID)
	}
	a.mu.Unlock()
	switch {
	case a.audit == nil:
	case !granted:
		a.audit.counts.refused.add(1)
	case exited: // the worker never got the answer, so it has not made the change
		a.audit.queueOutcome(u.change.outcomeLine(a.audit.now(), endNotMade, "its worker exited before it was granted", nil))
	default:
		a.audit.counts.granted.add(1)
	}
	switch {
	case u.granted && u.claim == 0:
		a.reply(u.msg.ID, query.Granted)
	case u.granted:
		a.Answer(&query.IntentDecision{ID: u.msg.ID, Decision: query.Granted, State: keystate.Fresh})
	case u.claim == 0:
		a.reply(u.msg.ID, query.Denied)
	default:
		a.ledger.recordEnd(u.claim, keystate.NotDone, nil, func() { a.reply(u.msg.ID, query.Denied) })
	}
}

// handleOutcome queues the log line for the outcome of a granted change, and
// the final state of its Idempotency-Key.
func (a *client) handleOutcome(m *query.Outcome) error {
	a.mu.Lock()
	u := a.open[m.ID]
	granted := u != nil && u.granted
	settles := slices.Contains([]keystate.State{keystate.Answered, keystate.Unknown, keystate.NotDone}, m.State)
	fits := granted && (u.claim != 0 && settles || u.claim == 0 && m.State == keystate.None)
	if fits {
		delete(a.open, m.ID)
	}
	a.mu.Unlock()
	switch {
	case !granted:
		return fmt.Errorf("sent Outcome for change %d, which was not granted", m.ID)
	case !fits:
		return fmt.Errorf("sent Outcome for change %d with state %d of its key", m.ID, m.State)
	}
	if a.audit != nil {
		a.audit.queueOutcome(u.change.outcomeLine(a.audit.now(), endReported, "", m))
	}
	if u.claim != 0 {
		a.ledger.recordEnd(u.claim, m.State, m.Answer, func() { a.Answer(&query.Settled{ID: m.ID}) })
	}
	return nil
}

// handleExit records the outcome "unknown" for the changes that the worker left
// open when it exited, and for their Idempotency-Keys.
func (a *client) handleExit(reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hasExited = true
	for id, u := range a.open {
		if !u.granted {
			continue // decide will find that the worker has exited
		}
		delete(a.open, id)
		if a.audit != nil {
			a.audit.queueOutcome(u.change.outcomeLine(a.audit.now(), endUnknown, reason, nil))
		}
		if u.claim != 0 {
			a.ledger.recordEnd(u.claim, keystate.Unknown, nil, nil)
		}
	}
}

func (a *client) reply(id uint64, decision query.Decision) {
	a.Answer(&query.IntentDecision{ID: id, Decision: decision})
}
