package conns

import (
	"io"
	"time"

	"schedrestd/gateway/worker/clientconn"
	"schedrestd/ipc/work"
)

// An HTTP/2 client can give a stream no window. It then reads nothing of the
// answer, but its connection never fills up. To tell such a stream from one
// that is read slowly, an answer is written in chunks. A client that reads one
// clientconn.Portion in each clientconn.PortionTime reads a chunk within
// stallTime, and also sends a window update.
const (
	chunk     = clientconn.Portion / 4
	stallTime = clientconn.PortionTime / 4
)

// Shorten shortens the deadlines of all requests that are being answered,
// because another waits for its turn.
func (t *Table) Shorten() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for q := range t.admitted {
		q.shortenLocked()
	}
}

// pressLocked shortens the deadlines of the requests of c, because a connection
// waits for its slot. If connections have been waiting for a while, it also
// aborts one of these requests.
func (t *Table) pressLocked(c *Conn) {
	abort := t.recordWaitLocked(time.Now())
	for q := range t.admitted {
		if q.conn == c {
			q.shortenLocked()
			if abort && q.mayAbortLocked() {
				q.abortLocked()
				abort = false
			}
		}
	}
}

// recordWaitLocked records that a connection waits for a slot. It reports
// whether connections have been waiting for at least clientconn.PortionTime.
func (t *Table) recordWaitLocked(now time.Time) (long bool) {
	if now.Sub(t.lastWait) > clientconn.PortionTime {
		t.waitingSince = now
	}
	t.lastWait = now
	return now.Sub(t.waitingSince) >= clientconn.PortionTime
}

// mayAbortLocked reports whether the request may be aborted while connections
// wait. It must be older than clientconn.PortionTime, and its user must hold
// more than half of the places for requests. Without this rule, a user with
// many requests that are just fast enough could keep all slots permanently.
func (q *Request) mayAbortLocked() bool {
	return q.place != nil && time.Since(q.start) >= clientconn.PortionTime && q.place.IsOverShare()
}

// shortenLocked shortens the deadlines of a request that is being answered.
func (q *Request) shortenLocked() {
	q.conn.raw.Shorten()
	if since := q.writeStart; q.isStream && !since.IsZero() && !since.Equal(q.checkedWrite) {
		q.checkedWrite = since
		time.AfterFunc(time.Until(since.Add(stallTime)), func() { q.dropStalled(since) })
	}
	if !q.bodyDeadline.IsZero() {
		return
	}
	q.stall = min(q.stall, clientconn.PortionTime)
	q.bodyDeadline = time.Now().Add(q.stall)
	if !q.readDeadline.IsZero() {
		_ = q.control.SetReadDeadline(earlier(q.readDeadline, q.bodyDeadline))
	}
	if !q.writeStart.IsZero() {
		q.limitWriteLocked(q.bodyDeadline)
	}
}

// abortLocked makes all reads and writes of the request fail.
func (q *Request) abortLocked() {
	if q.finished {
		return
	}
	now := time.Now()
	q.aborted, q.bodyDeadline = true, now
	if q.body != nil && !q.body.ended && q.writeStart.IsZero() {
		_ = q.control.SetReadDeadline(now)
		return
	}
	_ = q.control.SetWriteDeadline(now) // a write may be waiting for a client that reads slowly
}

// dropStalled resets the stream if its current write has been waiting for the
// client's window since the given time. It does nothing if the connection
// itself is full, or has unread input, which may contain the window update.
func (q *Request) dropStalled(since time.Time) {
	t := q.conn.table
	t.mu.Lock()
	defer t.unlock()
	if q.finished || q.aborted || !q.writeStart.Equal(since) || q.conn.raw.IsWriting() || q.conn.raw.HasUnread() {
		return
	}
	q.aborted = true
	// The stream is not reset at once. If the dispatcher blocks the client for
	// the offence, the worker must learn of the block before the reset makes
	// room for the client's next request.
	t.counts.Stalled.Add(1)
	t.reportLocked(q.conn, work.BadRequest, 0)
	time.AfterFunc(reactionTime, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		q.abortLocked()
	})
}

// reactionTime is how long the dispatcher may take to react to a reported
// offence.
const reactionTime = 50 * time.Millisecond

// limitWriteLocked makes writes of the answer fail from deadline on, or removes
// this limit if deadline is zero. It can't undo an abort.
func (q *Request) limitWriteLocked(deadline time.Time) {
	if !q.aborted {
		_ = q.control.SetWriteDeadline(deadline)
	}
}

// beginWrite sets the deadline for a write to a stream.
func (q *Request) beginWrite(now time.Time) {
	q.conn.table.mu.Lock()
	defer q.conn.table.mu.Unlock()
	q.writeStart = now
	q.limitWriteLocked(now.Add(q.stall))
}

// setWriteStart records when a write began to wait for the client.
func (q *Request) setWriteStart(since time.Time) {
	q.conn.table.mu.Lock()
	defer q.conn.table.mu.Unlock()
	q.writeStart = since
}

// endWrite removes the deadline for a write.
func (q *Request) endWrite() {
	q.conn.table.mu.Lock()
	defer q.conn.table.mu.Unlock()
	q.writeStart = time.Time{}
	q.limitWriteLocked(time.Time{})
}

// SetReadDeadline sets the deadline by which the handler needs the next piece
// of the body. http.ResponseController calls it.
func (q *Request) SetReadDeadline(t time.Time) error {
	q.conn.table.mu.Lock()
	defer q.conn.table.mu.Unlock()
	q.readDeadline = t
	if !t.IsZero() && !q.bodyDeadline.IsZero() {
		t = earlier(t, q.bodyDeadline)
	}
	return q.control.SetReadDeadline(t)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Read reads from the body. The bytes that arrive extend the deadline, in
// proportion to their number.
func (b *slowBody) Read(buf []byte) (int, error) {
	n, err := b.ReadCloser.Read(buf)
	q := b.request
	q.conn.table.mu.Lock()
	defer q.conn.table.mu.Unlock()
	b.ended = b.ended || err == io.EOF
	if !q.bodyDeadline.IsZero() && !q.aborted {
		q.bodyDeadline = q.bodyDeadline.Add(clientconn.PortionTime * time.Duration(n) / clientconn.Portion)
	}
	return n, err
}
