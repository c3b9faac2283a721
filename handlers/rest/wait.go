package rest

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"schedrestd/handlers/feed"
	"schedrestd/internal/errs"
	"schedrestd/internal/origin"
)

// A client that has the current answer already can wait for the next one. Its
// request is then carried out again whenever something has changed that it may
// show, until its answer differs from the client's, or the time is over. So a
// request that waits has the same answers as one that does not.
//
// Most operations tell the request what to wait for (Watch). The others are
// carried out again at intervals.

// waiting is the state of a request that waits.
type waiting struct {
	holds   bool       // an answer that the client has already is not sent yet; false when the time is over
	after   time.Time  // data that was requested after this time is new enough; zero before the request listens for changes
	changes listener   // nil for none
	end     feed.Count // what has ended the last wait; feed.Waits before the first one
}

// listens reports whether the request listens for changes from now on.
func (w *waiting) listens() bool { return !w.after.IsZero() }

// A listener waits for changes of what a request shows.
type listener interface {
	// next waits for the next change. Data that is requested after the time that
	// it returns contains the change. The result changed is false if the listener
	// has only learned of a newer state, which may be the same.
	next(ctx context.Context) (after time.Time, changed bool, err error)
	leave()
}

// errHeld is the result of a request that waits for a change.
var errHeld = errors.New("the answer has not changed")

// Until returns the state of the job for which the request waits:
// api.UntilEnded, api.UntilRunning, or "" for none.
func (q *request) Until() string {
	if q.waits == nil {
		return ""
	}
	return q.waits.until
}

// Hold returns an error if the request waits, because what it waits for has not
// happened. The operation must return this error. If the time is over, Hold
// returns nil, and the operation answers.
func (a *answer) Hold() error {
	if a.waiting.holds {
		return errHeld
	}
	return nil
}

// Reached ends the wait, because the controller has sent what the request waits
// for, after the given time. The rest of the request uses this data.
func (c *Call) Reached(asked time.Time) {
	if c.waits != nil {
		c.waiting.holds = false
		c.ctx = origin.With(c.r.Context(), &origin.Origin{Digest: c.route.Paged, After: asked})
	}
}

// carryOut carries out the request. If the request waits, carryOut does so again
// until there is something to answer. A request that changes something is carried
// out once, and waits itself.
func (c *Call) carryOut(do func() error) error {
	if c.waits == nil || c.r.Method == http.MethodPost {
		c.setOrigin()
		return do()
	}
	header := c.Header().Clone()
	return c.Await(func() error {
		c.resetHeader(header)
		return do()
	})
}

// Await calls attempt until its result is not that of Hold. Between the calls, it
// waits for changes. Only the warnings of the last call remain.
func (c *Call) Await(attempt func() error) error {
	w, warnings := &c.waiting, len(c.warnings)
	defer w.finish(c.server.Worker)
	for {
		c.KeepWarnings(warnings)
		c.setOrigin()
		err := attempt()
		if !w.holds || err != errHeld && errs.KindOf(err) != errs.Unchanged {
			return err
		}
		if !w.listens() { // a change before the request listens must not be missed
			w.after = c.startedAt
		} else if err := c.wait(); err != nil {
			return err
		}
	}
}

// Waits reports whether the request waits for a change. Such a request does not
// need the time of a list, so that it can use what others have read
// (model.Query.Undated).
func (q *request) Waits() bool { return q.waits != nil }

// wait waits until something may have changed, or the time is over.
func (c *Call) wait() error {
	w := &c.waiting
	ctx, parked, end, err := c.park()
	if err != nil {
		w.fail()
		return err
	}
	defer end()
	ctx, cancel := context.WithDeadline(ctx, c.waits.deadline)
	defer cancel()
	after, changed, err := c.listen(ctx)
	switch w.end = c.endOf(err); {
	case w.end == feed.WaitLeft:
		return cancelled(context.Cause(c.r.Context()))
	case err != nil && (errs.KindOf(err) == errs.Unauthenticated || c.tokenEnd() != nil):
		return err
	case err != nil && w.changes != nil:
		// The time is over, or the wait was stopped. If the last pass is not much
		// older, it has found no change, and the last attempt uses what it has read.
		w.holds = false
		w.newer(time.Now().Add(-2 * c.server.WatchInterval))
	case err != nil:
		w.holds, w.after = false, time.Now()
	default:
		w.newer(after)
		if changed {
			c.server.Worker.CountWatch(feed.Wakes, 1)
		}
	}
	if err := parked.Resume(c.r.Context()); err != nil {
		w.fail()
		return err
	}
	return nil
}

// park gives up what other requests need while this one waits for changes or
// follows them (Worker.Park). The context that it returns ends when the client
// has left, or when the server ends the wait. The caller must call end.
func (q *request) park() (ctx context.Context, parked Parked, end func(), err error) {
	ctx, cancel := context.WithCancelCause(q.r.Context())
	if parked, err = q.server.Worker.Park(q.r.Context(), q.client.User(), func() { cancel(errNeeded) }); err != nil {
		cancel(nil)
		return nil, nil, nil, err
	}
	forget := context.AfterFunc(q.server.stopped, func() { cancel(context.Cause(q.server.stopped)) })
	return ctx, parked, func() {
		forget()
		cancel(nil)
		parked.Leave()
	}, nil
}

// listen waits for the next change, and counts the time.
func (c *Call) listen(ctx context.Context) (after time.Time, changed bool, err error) {
	begun := time.Now()
	c.waiting.end = feed.WaitFailed
	c.server.Worker.CountWatch(feed.Waits, 1)
	defer func() {
		c.server.Worker.CountWatch(feed.Waits, -1)
		c.idle += time.Since(begun)
	}()
	return c.waiting.next(ctx, c.server)
}

// endOf returns what has ended a wait with this error.
func (q *request) endOf(err error) feed.Count {
	_, stopped := errors.AsType[stopReason](err)
	switch {
	case q.tokenEnd() != nil:
		return feed.WaitFailed
	case q.r.Context().Err() != nil:
		return feed.WaitLeft
	case err == nil:
		return feed.WaitChanged
	case stopped:
		return feed.WaitStopped
	case errors.Is(err, context.DeadlineExceeded):
		return feed.WaitTimeout
	}
	return feed.WaitFailed
}

// fail notes that a request that has waited can't go on. Without a place to wait,
// a request does not begin to wait.
func (w *waiting) fail() {
	if w.end != feed.Waits {
		w.end = feed.WaitFailed
	}
}

// newer says that data must have been requested after this time.
func (w *waiting) newer(than time.Time) {
	if than.After(w.after) {
		w.after = than
	}
}

// next waits for the next change. Without a listener, it waits for an interval.
func (w *waiting) next(ctx context.Context, s *Server) (after time.Time, changed bool, err error) {
	if w.changes != nil {
		return w.changes.next(ctx)
	}
	select {
	case <-time.After(s.WatchInterval + rand.N(s.WatchInterval/8+1)):
		return time.Now().Add(-s.WatchInterval), true, nil
	case <-ctx.Done():
		return time.Time{}, false, context.Cause(ctx)
	}
}

// finish releases what the wait has used, and counts how the wait has ended.
func (w *waiting) finish(worker Worker) {
	if w.end != feed.Waits {
		worker.CountWatch(w.end, 1)
	}
	if w.changes != nil {
		w.changes.leave()
		w.changes = nil
	}
}
