package broker

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
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

// The type auditor stands for the auditor process. Before each change, it asks
// the process for permission. After the change, it reports the outcome.
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
	// claimTimeout replaces intentTimeout for a change with an Idempotency-Key,
	// unless the answer is TryLater.
	claimTimeout = 10 * time.Second
	// settleTimeout is the maximum time for which the worker holds back a
	// client's answer while it waits for the auditor to store that answer.
	settleTimeout = 5 * time.Second
)

var errAuditShare = errs.New(errs.TooMany, "too many changes by this user: the limit on bytes in the audit log is reached")

var errUnrecorded = errs.New(errs.Unavailable, "change refused: the audit log is unavailable")

// The type changes implements rest.Audit with the auditor process.
type changes struct {
	*auditor
	logged bool // there is an audit log; otherwise the auditor keeps only Idempotency-Keys
	keys   bool // the auditor keeps Idempotency-Keys
}

// KeepsKeys implements rest.Audit.
func (a changes) KeepsKeys() bool { return a.keys }

// Intend implements rest.Audit. It waits for the auditor's answer even if
// the client disconnects, because the worker must report the outcome of every
// permitted change, even of a change that it did not make. If the answer is
// TryLater and the client has disconnected, Intend does not ask again.
func (a changes) Intend(ctx context.Context, change rest.Change) (func(rest.Result), error) {
	switch {
	case !a.logged && change.Key == nil:
		return func(rest.Result) {}, nil
	case !a.logged:
		return a.intend(ctx, change, false, &rest.KeyError{State: keystate.Full})
	}
	user, size := auditIdentity(change), auditSize(change)
	wait := a.bytes.Take(time.Now(), user, size)
	limited := wait > 0
	var report func(rest.Result)
	var err error
	if !limited || change.Key != nil { // an earlier answer adds nothing to the log
		report, err = a.intend(ctx, change, limited, errUnrecorded)
		keyErr, isKeyErr := errors.AsType[*rest.KeyError](err)
		if isKeyErr && !limited {
			a.bytes.Charge(time.Now(), user, -size) // give back: nothing was added to the log
		}
		if isKeyErr && keyErr.State != keystate.NotDone {
			return nil, err
		}
	}
	a.counts.Changes.Add(1)
	switch {
	case limited:
		a.counts.Limited.Add(1)
		return nil, &rest.RetryAfterError{Err: errAuditShare, After: wait}
	case err != nil:
		a.counts.Unrecorded.Add(1)
	}
	return report, err
}

// intend asks for permission to make a change. If lookup is set, only an
// earlier answer to the change's Idempotency-Key is wanted. The error is denied
// if the auditor refuses the change for another reason than its key.
func (a *auditor) intend(ctx context.Context, change rest.Change, lookup bool, denied error) (func(rest.Result), error) {
	connection, _ := ctx.Value(connectionKey{}).(uint64)
	keyed := change.Key != nil
	limit, cancel := within(intentTimeout)
	defer cancel()
	for {
		l, err := a.service.connected()
		var number uint64
		var answer ipc.Message
		if err == nil {
			answer, err = askIntent(limit, l, keyed, func(id uint64) ipc.Message {
				number = id
				return intent(id, connection, change, lookup)
			})
		}
		switch {
		case err != nil && keyed:
			return nil, &rest.KeyError{State: keystate.Full, Cause: err}
		case err != nil:
			return nil, errs.Wrap(err, errs.Unavailable, "%s", errUnrecorded.Message)
		}
		noted, ok := answer.(*query.IntentDecision)
		if !ok {
			return nil, denied
		}
		switch {
		case noted.Decision == query.Granted:
			return func(r rest.Result) { report(l, number, keyed, r) }, nil
		case noted.State != keystate.None:
			return nil, &rest.KeyError{State: noted.State, Answer: noted.Answer}
		case noted.Decision == query.Denied:
			return nil, denied
		}
		select {
		case <-time.After(intentRetryDelay):
		case <-limit.Done():
			return nil, denied
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// askIntent asks the auditor once. If the change has an Idempotency-Key, it
// waits at most for claimTimeout.
func askIntent(limit context.Context, l *link, keyed bool, question func(id uint64) ipc.Message) (ipc.Message, error) {
	if keyed {
		var cancel context.CancelFunc
		limit, cancel = context.WithTimeoutCause(limit, claimTimeout, errNoService)
		defer cancel()
	}
	return l.ask(limit, l.channel.Send, question)
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
	m := intent(0, 0, change, false)
	for _, text := range []string{m.Request, m.Forwarded, m.User, m.Token, m.ActAs, m.Method, m.Route, m.Object, m.Fields} {
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
func intent(number, connection uint64, change rest.Change, lookup bool) *query.Intent {
	m := &query.Intent{
		ID:         number,
		Connection: connection,
		Request:    change.Request,
		Forwarded:  change.Forwarded,
		User:       change.User,
		UID:        ipc.NoID,
		Token:      change.Token,
		ActAs:      change.ActAs,
		Method:     change.Method,
		Route:      change.Route,
		Object:     change.Object,
		Fields:     change.Fields,
	}
	if change.Local {
		m.UID = change.UID
	}
	if k := change.Key; k != nil {
		m.Key = []query.Key{{Value: k.Key, User: k.User, Body: k.Body, Lookup: lookup, Search: k.Search}}
	}
	return m.Truncate()
}

// report sends the auditor the outcome of a change. If the change has an
// Idempotency-Key, report waits until the auditor has stored the outcome. If
// sending fails, the auditor has exited: the audit log contains only the intent,
// and the answer to later requests with the key says that the outcome is
// unknown.
func report(l *link, id uint64, keyed bool, r rest.Result) {
	m := &query.Outcome{ID: id, Status: uint16(r.Status), Code: r.Code, Number: r.Number, Result: r.Objects}
	if !keyed {
		_ = l.channel.Send(m.Truncate())
		return
	}
	m.State, m.Answer = r.KeyState(), r.Answer
	limit, cancel := within(settleTimeout)
	defer cancel()
	if _, err := l.exchange(limit, l.channel.Send, id, m.Truncate(), l.pending.registerAs(id)); err != nil {
		slog.Warn("answer for an Idempotency-Key not kept", "error", err)
	}
}

// decline handles a permission that arrives too late. It tells the auditor that
// the change was not made. Without this message, the auditor would record that
// the change may have been made.
func decline(l *link, m ipc.Message) {
	if m, ok := m.(*query.IntentDecision); ok && m.Decision == query.Granted {
		outcome := &query.Outcome{ID: m.ID, Status: http.StatusServiceUnavailable, Code: "not_made"}
		if m.State == keystate.Fresh {
			outcome.State = keystate.NotDone
		}
		_ = l.channel.Send(outcome)
	}
}

type connectionKey struct{}

// WithConnection returns a context for the requests of a connection. The
// argument number is the connection's number, by which the auditor knows it.
func WithConnection(ctx context.Context, number uint64) context.Context {
	return context.WithValue(ctx, connectionKey{}, number)
}
