package conns

import (
	"context"
	"time"
)

// hangupInterval is how often requests in progress are examined. Most requests
// are answered earlier, and cost no system call.
const hangupInterval = 50 * time.Millisecond

// isDue reports whether a request must be examined after the given number of
// intervals: at first each time, and later at least once in a second.
func isDue(intervals int) bool { return intervals&(intervals-1) == 0 || intervals%20 == 0 }

// scheduleHangupCheckLocked schedules checkHangups.
func (t *Table) scheduleHangupCheckLocked() {
	if !t.hangupCheckScheduled {
		t.hangupCheckScheduled = true
		time.AfterFunc(hangupInterval, t.checkHangups)
	}
}

// checkHangups cancels each HTTP/1 request whose client can neither send nor
// receive, or sends no more while the request is parked. (net/http itself
// notices that an HTTP/2 client is gone.) It schedules its next call if a
// request is in progress.
func (t *Table) checkHangups() {
	var due, parked []*Conn
	t.mu.Lock()
	t.hangupCheckScheduled = false
	for q := range t.requests {
		if q.polls++; q.polls > 1 && isDue(q.polls) && q.conn.http1 != nil {
			due = append(due, q.conn)
			if q.stop != nil {
				parked = append(parked, q.conn)
			}
		}
		t.scheduleHangupCheckLocked()
	}
	t.mu.Unlock()
	for _, c := range due {
		if c.raw.IsHungUp() {
			c.http1.Cancel()
		}
	}
	for _, c := range parked {
		if c.raw.HasHalfClosed() {
			c.http1.Cancel()
		}
	}
}

// HasHalfClosed reports whether the client of a request with the context ctx has
// shut down the sending side of its connection (clientconn.Conn.HasHalfClosed).
func HasHalfClosed(ctx context.Context) bool {
	c, ok := ctx.Value(connKey{}).(*Conn)
	return ok && c.raw.HasHalfClosed()
}
