package broker

import (
	"context"
	"strconv"
	"time"

	"schedrestd/gateway/worker/count"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/internal/keystate"
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// The type auditor stands for the auditor process, and implements rest.Audit.
// Before each change, it asks the process for permission. After the change, it
// reports the outcome.
type auditor struct {
	service *service
	counts  AuditCounts
	bytes   *rate.Buckets[string] // limits the bytes that each user adds to the audit log
}

// AuditCounts counts changes since the start of this worker.
type AuditCounts struct {
	Changes    count.Counter // changes that had to be recorded
	Limited    count.Counter // changes refused because of the limit of their user
	Unrecorded count.Counter // changes refused because they could not be recorded
}

func newAuditor() *auditor {
	a := &auditor{service: newService(ipc.Auditor), bytes: rate.NewBuckets[string](limit.AuditBytes)}
	a.service.onLate = decline
	return a
}

const (
	// intentTimeout is how long the worker waits for permission. The auditor's
	// own time limit for recording a change is shorter.
	intentTimeout = 30 * time.Second
	// intentRetryDelay is how long the worker waits after the answer TryLater
	// before it asks again.
	intentRetryDelay = 50 * time.Millisecond
)

var errAuditShare = errs.New(errs.TooMany, "too many changes by this user: the limit on bytes in the audit log is reached")

var errUnrecorded = errs.New(errs.Unavailable, "change refused: the audit log is unavailable")

// Intend implements rest.Audit. It waits for the auditor's answer even if
// the client disconnects, because the worker must report the outcome of every
// permitted change, even of a change that it did not make. If the answer is
// TryLater and the client has disconnected, Intend does not ask again.
func (a *auditor) Intend(ctx context.Context, change rest.Change) (func(rest.Result), error) {
	a.counts.Changes.Add(1)
	if wait := a.bytes.TakeN(time.Now(), auditIdentity(change), auditSize(change)); wait > 0 {
		a.counts.Limited.Add(1)
		return nil, &rest.RetryAfterError{Err: errAuditShare, After: wait}
	}
	report, err := a.intend(ctx, change)
	if err != nil {
		a.counts.Unrecorded.Add(1)
	}
	return report, err
}

func (a *auditor) intend(ctx context.Context, change rest.Change) (func(rest.Result), error) {
	connection, _ := ctx.Value(connectionKey{}).(uint64)
	limit, cancel := within(intentTimeout)
	defer cancel()
	for {
		l, err := a.service.connected()
		var number uint64
		var answer ipc.Message
		if err == nil {
			answer, err = l.ask(limit, l.channel.Send, func(id uint64) ipc.Message {
				number = id
				return intent(id, connection, change)
			})
		}
		if err != nil {
			return nil, errs.Wrap(err, errs.Unavailable, "%s", errUnrecorded.Message)
		}
		noted, ok := answer.(*query.IntentDecision)
		if !ok {
			return nil, errUnrecorded
		}
		switch noted.Decision {
		case query.Granted:
			return func(r rest.Result) { report(l, number, r) }, nil
		case query.Denied:
			return nil, errUnrecorded
		}
		select {
		case <-time.After(intentRetryDelay):
		case <-limit.Done():
			return nil, errUnrecorded
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// auditIdentity returns the user whose share of the audit log a change uses: the
// user of the credential. The daemon has not yet checked whether this user may
// act as another, so a client could use up the share of another user.
func auditIdentity(change rest.Change) string {
	if change.Local {
		return "uid " + strconv.FormatUint(uint64(change.UID), 10)
	}
	return change.User
}

// auditSize returns about how many bytes both lines of a change take in the
// audit log. The auditor writes an unprintable character as six bytes or more.
func auditSize(change rest.Change) float64 {
	const keysAndFacts = 400
	size := keysAndFacts
	m := intent(0, 0, change)
	for _, text := range []string{m.Request, m.Forwarded, m.User, m.ActAs, m.Method, m.Route, m.Object, m.Fields} {
		size += len(text)
		for i := range len(text) {
			if c := text[i]; c < ' ' || c >= 0x7f {
				size += 5
			}
		}
	}
	return float64(2 * size)
}

// intent returns the message that announces a change.
func intent(number, connection uint64, change rest.Change) *query.Intent {
	m := &query.Intent{
		ID:         number,
		Connection: connection,
		Request:    change.Request,
		Forwarded:  change.Forwarded,
		User:       change.User,
		UID:        ipc.NoID,
		ActAs:      change.ActAs,
		Method:     change.Method,
		Route:      change.Route,
		Object:     change.Object,
		Fields:     change.Fields,
	}
	if change.Local {
		m.UID = change.UID
	}
	return m.Truncate()
}

// report sends the auditor the outcome of a change. If sending fails, the
// auditor has exited, and the audit log contains only the intent.
func report(l *link, number uint64, r rest.Result) {
	m := &query.Outcome{ID: number, Status: uint16(r.Status), Code: r.Code, Number: r.Number, Result: r.Objects}
	_ = l.channel.Send(m.Truncate())
}

// decline handles a permission or a granted claim that arrives too late. It
// tells the auditor that the change was not made. Without this message, the
// auditor would record that the change may have been made.
func decline(l *link, m ipc.Message) {
	switch m := m.(type) {
	case *query.IntentDecision:
		if m.Decision == query.Granted {
			report(l, m.ID, rest.Result{Status: 503, Code: "not_made"})
		}
	case *query.Claimed:
		if m.State == keystate.Fresh {
			_ = l.channel.Send(&query.Settle{ID: m.ID, Claim: m.ID, State: keystate.NotDone})
		}
	}
}

type connectionKey struct{}

// WithConnection returns a context for the requests of a connection. The
// argument number is the connection's number, by which the auditor knows it.
func WithConnection(ctx context.Context, number uint64) context.Context {
	return context.WithValue(ctx, connectionKey{}, number)
}
