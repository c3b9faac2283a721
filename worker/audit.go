package worker

import (
	"context"
	"time"

	"schedrestd/errs"
	"schedrestd/handlers"
	"schedrestd/ipc"
)

// changes asks the parent for leave before each change, and tells it what became of it. It is handlers.Audit.
type changes struct {
	send   func(ipc.Message, ...int) error
	counts *counters
	asked  asked[ipc.Leave]
}

func newChanges(send func(ipc.Message, ...int) error) *changes {
	return &changes{send: send, counts: new(counters)}
}

const (
	// leaveLimit is longer than the parent takes to say no.
	leaveLimit = 30 * time.Second
	// leavePause is how long a worker waits that asks too often.
	leavePause = 50 * time.Millisecond
)

var errUnrecorded = errs.New(errs.Unavailable, "no change is made now: it could not be recorded in the audit log")

// Intend is handlers.Audit's. A client that goes meanwhile does not end the wait: what may be made is made, or
// reported as not.
func (c *changes) Intend(ctx context.Context, change handlers.Change) (func(handlers.Result), error) {
	c.counts.changes.Add(1)
	report, err := c.intend(ctx, change)
	if err != nil {
		c.counts.unrecorded.Add(1)
	}
	return report, err
}

func (c *changes) intend(ctx context.Context, change handlers.Change) (func(handlers.Result), error) {
	id, _ := ctx.Value(connectionKey{}).(uint64)
	limit := time.NewTimer(leaveLimit)
	defer limit.Stop()
	for {
		number, answer := c.asked.next()
		if err := c.send(intent(number, id, change)); err != nil {
			c.asked.forget(number, answer)
			return nil, errs.Wrap(err, errs.Unavailable, "%s", errUnrecorded.Message)
		}
		select {
		case leave := <-answer:
			switch leave {
			case ipc.Granted:
				return func(r handlers.Result) { c.report(number, r) }, nil
			case ipc.Withheld:
				return nil, errUnrecorded
			}
		case <-limit.C:
			if leave, came := c.asked.forget(number, answer); came {
				c.decline(number, leave)
			}
			return nil, errUnrecorded
		}
		select {
		case <-time.After(leavePause):
		case <-limit.C:
			return nil, errUnrecorded
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// intent is the message about a change.
func intent(number, connection uint64, change handlers.Change) *ipc.Intent {
	m := &ipc.Intent{ID: number, Connection: connection, Request: change.Request, Forwarded: change.Forwarded, User: change.User, UID: ipc.NoID, ActAs: change.ActAs,
		Method: change.Method, Route: change.Route, Object: change.Object}
	if change.Local {
		m.UID = change.UID
	}
	return m.Cut()
}

// report says what became of a change. When it can't be said the parent is gone, and knows.
func (c *changes) report(number uint64, r handlers.Result) {
	m := &ipc.Outcome{ID: number, Status: uint16(r.Status), Code: r.Code, Number: r.Number, Result: r.Objects}
	_ = c.send(m.Cut())
}

// hear takes an answer to who waits for it.
func (c *changes) hear(m *ipc.Noted) {
	if !c.asked.answer(m.ID, m.Leave) {
		c.decline(m.ID, m.Leave)
	}
}

// decline gives back leave that came when nobody waited any more: the parent would take the change for one that
// may have been made.
func (c *changes) decline(number uint64, leave ipc.Leave) {
	if leave == ipc.Granted {
		c.report(number, handlers.Result{Status: 503, Code: "not_made"})
	}
}

// connectionKey is where a request's context has the parent's number of its connection.
type connectionKey struct{}
