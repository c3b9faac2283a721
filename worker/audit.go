package worker

import (
	"context"
	"time"

	"schedrestd/errs"
	"schedrestd/handlers"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// changes asks the auditor for leave before each change, and tells it what became of it. It is handlers.Audit.
type changes struct {
	*remoteService
	counts *counters
}

func newChanges() *changes {
	c := &changes{newRemoteService(ipc.Auditor), new(counters)}
	c.late = decline
	return c
}

const (
	// leaveLimit is longer than the auditor takes to say no.
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
		var asked *link // the one that has the intent
		var number uint64
		// A client that goes does not end this: the context is not its.
		answer, err := c.ask(context.Background(), func(l *link) func(ipc.Message, ...int) error { asked = l; return l.channel.Send }, limit.C, func(n uint64) ipc.Message {
			number = n
			return intent(n, id, change)
		})
		if err != nil {
			return nil, errs.Wrap(err, errs.Unavailable, "%s", errUnrecorded.Message)
		}
		switch answer.(*query.Noted).Leave {
		case query.Granted:
			return func(r handlers.Result) { report(asked, number, r) }, nil
		case query.Withheld:
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
func intent(number, connection uint64, change handlers.Change) *query.Intent {
	m := &query.Intent{ID: number, Connection: connection, Request: change.Request, Forwarded: change.Forwarded, User: change.User, UID: ipc.NoID, ActAs: change.ActAs,
		Method: change.Method, Route: change.Route, Object: change.Object, Fields: change.Fields}
	if change.Local {
		m.UID = change.UID
	}
	return m.Cut()
}

// report says what became of a change. When it can't be said the auditor is gone, and the log has the intent alone.
func report(to *link, number uint64, r handlers.Result) {
	m := &query.Outcome{ID: number, Status: uint16(r.Status), Code: r.Code, Number: r.Number, Result: r.Objects}
	_ = to.channel.Send(m.Cut())
}

// decline gives back leave that came when nobody waited any more: the auditor would take the change for one that
// may have been made.
func decline(l *link, m ipc.Message) {
	if m, ok := m.(*query.Noted); ok && m.Leave == query.Granted {
		report(l, m.ID, handlers.Result{Status: 503, Code: "not_made"})
	}
}

// connectionKey is where a request's context has the parent's number of its connection.
type connectionKey struct{}
