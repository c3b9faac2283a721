package cli

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"

	"schedrestd/cli/rest"
	"schedrestd/internal/errs"
)

// retryTimeout limits the time for which a failing request is repeated. The
// limit applies to commands that wait for jobs or watch them.
const retryTimeout = 15 * time.Minute

// warnAfter is the time for which requests fail before the user is warned. A
// gateway or a controller that is restarted is back earlier.
const warnAfter = 5 * time.Second

// A schedule determines how often a request is repeated. If the server can delay its
// answers until something has changed, min is the shortest time between two of
// them. Otherwise the pauses between requests grow from min to max.
type schedule struct {
	min, max time.Duration
	patience time.Duration // how long a failing request is repeated; 0 for any time
}

// jobSchedule is the schedule of requests about named jobs. The first pauses are
// short, because many jobs are short.
var jobSchedule = schedule{500 * time.Millisecond, 5 * time.Second, retryTimeout}

// repeat calls request, which requests l, again and again until it returns done,
// or an error that does not go away.
func (c *connection) repeat(ctx context.Context, l *rest.List, p schedule, request func() (m rest.Meta, done bool, err error)) error {
	pause, failingSince := p.min, time.Time{}
	l.Wait = true
	for {
		begun := time.Now()
		m, done, err := request()
		waited := err == nil && m.Wait > 0 && (!m.Unchanged || time.Since(begun) > min(m.Wait/2, p.max))
		switch {
		case err == nil && done:
			return nil
		case err == nil:
			failingSince = time.Time{}
			c.outage.Store(false)
			if l.Wait {
				c.noteWaits(m.Wait > 0, p)
			}
		case ctx.Err() != nil:
			return ctx.Err()
		case !isRetryable(err) || p.patience > 0 && !failingSince.IsZero() && time.Since(failingSince) > p.patience:
			return err
		case failingSince.IsZero():
			failingSince = time.Now()
		}
		if err != nil && p.patience > 0 && time.Since(failingSince) >= warnAfter && !c.outage.Swap(true) {
			c.warn("%s; trying again for up to %.0f minutes", err, p.patience.Minutes())
		}
		delay := max(pause, rest.RetryAfter(err))
		if waited {
			delay, pause = max(0, p.min-time.Since(begun)), p.min
		} else { // a server that stops or has new settings does not wait either
			pause = min(pause*3/2, p.max)
		}
		// Too many clients may be waiting, or a proxy may not permit a request to
		// wait so long. So the next request after a failure does not wait.
		l.Wait = err == nil
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(delay + rand.N(delay/8+1)): // so that clients that have lost a server do not come back together
		}
	}
}

// noteEvents notes once that the server sends the changes.
func (c *connection) noteEvents() {
	c.waitNote.Do(func() { c.log("note: the server sends the changes, so schedctl need not ask for them") })
}

// noteWaits notes once whether the server can wait.
func (c *connection) noteWaits(can bool, p schedule) {
	c.waitNote.Do(func() {
		switch {
		case can:
			c.log("note: the server answers when something has changed, so schedctl need not ask again and again")
		case p.min == p.max:
			c.log("note: the server can't wait for changes, so schedctl asks again every %s", p.min)
		default:
			c.log("note: the server can't wait for changes, so schedctl asks again after pauses from %s to %s", p.min, p.max)
		}
	})
}

// isRetryable reports whether a request that failed with err may succeed if it
// is sent again.
func isRetryable(err error) bool {
	switch errs.KindOf(err) {
	case errs.Unavailable, errs.Timeout, errs.TooMany, errs.BadAnswer, errs.Internal:
		return true
	}
	return errors.Is(err, io.ErrUnexpectedEOF)
}
