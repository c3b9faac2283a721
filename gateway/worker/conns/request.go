package conns

import (
	"net/http"
	"net/netip"
	"time"

	"schedrestd/gateway/worker/clientconn"
	"schedrestd/ipc/work"
)

// Begin adds a request to the connection. The argument source is its client if
// the connection belongs to a proxy. The caller must call Finish when the
// request is answered or refused.
func (c *Conn) Begin(w http.ResponseWriter, r *http.Request, source netip.Addr) *Request {
	t := c.table
	q := &Request{
		ResponseWriter: w,
		control:        http.NewResponseController(w),
		conn:           c,
		isStream:       r.ProtoMajor == 2,
		start:          time.Now(),
		source:         source,
		stall:          c.raw.Stall,
	}
	if r.Body != nil && r.Body != http.NoBody {
		q.body = &slowBody{ReadCloser: r.Body, request: q}
		r.Body = q.body
	}
	t.mu.Lock()
	defer t.unlock()
	c.requests++
	t.setStageLocked(c, work.Answering)
	t.requests[q] = struct{}{}
	t.scheduleHangupCheckLocked()
	return q
}

// Admit records that the request is being answered. The argument place is nil
// if the request needs none.
func (q *Request) Admit(place Place) {
	t := q.conn.table
	t.mu.Lock()
	defer t.mu.Unlock()
	q.place = place
	t.admitted[q] = struct{}{}
}

// Park records that the request waits for a change, or if calls is true for an
// accounting daemon, and has given up its place. The function stop ends the wait.
// It is called if the connection is needed for another client. It must not wait,
// and may have no effect on a call that makes a change.
//
// While a request waits, which may take minutes, a client that has shut down its
// sending side counts as gone. A client that leaves usually closes its
// connection, and with TCP this looks the same.
func (q *Request) Park(stop func(), calls bool) {
	t := q.conn.table
	t.mu.Lock()
	defer t.unlock()
	q.place, q.stop, q.calls = nil, stop, calls
	delete(t.admitted, q)
	q.conn.parked++
	if calls {
		q.conn.calls++
	}
	t.setWatchingLocked(q.conn)
}

// Resume records that the request no longer waits, and has a place again.
func (q *Request) Resume(place Place) {
	t := q.conn.table
	t.mu.Lock()
	defer t.unlock()
	q.unparkLocked()
	q.place = place
	t.admitted[q] = struct{}{}
	t.setStageLocked(q.conn, work.Answering)
}

// unparkLocked ends the wait of a request, if it waits.
func (q *Request) unparkLocked() {
	if q.stop == nil {
		return
	}
	if q.calls {
		q.conn.calls--
	}
	q.stop, q.calls = nil, false
	q.conn.parked--
}

// setWatchingLocked sets the stage Watching or Calling if all requests of c
// wait for a change or for an accounting daemon.
func (t *Table) setWatchingLocked(c *Conn) {
	switch {
	case c.requests == 0 || c.parked < c.requests:
	case c.calls > 0:
		t.setStageLocked(c, work.Calling)
	default:
		t.setStageLocked(c, work.Watching)
	}
}

// Finish records that the request's handler has returned. The request's
// http.ResponseWriter must not be used afterwards.
func (q *Request) Finish() {
	t := q.conn.table
	t.mu.Lock()
	defer t.unlock()
	q.finished = true
	delete(t.requests, q)
	delete(t.admitted, q)
	q.unparkLocked()
	q.conn.requests--
	q.conn.failed = q.conn.failed || q.status >= http.StatusBadRequest
	t.setWatchingLocked(q.conn)
	t.removeLocked(q.conn)
}

// HasFailed reports whether a request on the connection was answered with an
// error.
func (c *Conn) HasFailed() bool {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	return c.failed
}

// BlockedFor returns how much longer the client of the request is blocked, and 0
// if it is not.
func (q *Request) BlockedFor() time.Duration {
	t := q.conn.table
	t.mu.Lock()
	defer t.mu.Unlock()
	wait := q.conn.blockedForLocked()
	if wait == 0 && q.source.IsValid() {
		return t.forwarded.BlockedFor(time.Now(), q.source)
	}
	return wait
}

// isLast reports whether the connection has to end with this answer. That of a
// blocked client ends so that the client reconnects, and the dispatcher refuses
// the new connection. On the old one, the worker would have to answer and log
// every request from the client.
func (q *Request) isLast() bool {
	t := q.conn.table
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.retired || t.draining || q.conn.closing || q.conn.blockedForLocked() > 0
}

// Status returns the status of the answer, or 0 if the handler has not sent one.
func (q *Request) Status() int { return q.status }

// Unwrap returns the wrapped writer, for http.ResponseController.
func (q *Request) Unwrap() http.ResponseWriter { return q.ResponseWriter }

// WriteHeader sends the status of the answer. It also announces the end of the
// connection if the answer must be its last. With HTTP/2, net/http then sends
// GOAWAY.
func (q *Request) WriteHeader(status int) {
	if status >= http.StatusOK {
		q.status = status
		if q.isLast() {
			q.Header().Set("Connection", "close")
		}
	}
	q.ResponseWriter.WriteHeader(status)
}

// Write writes b. It writes to an HTTP/2 stream in pieces, each with its own
// deadline.
func (q *Request) Write(b []byte) (n int, err error) {
	if q.status == 0 {
		q.WriteHeader(http.StatusOK)
	}
	if !q.isStream {
		return q.ResponseWriter.Write(b)
	}
	for err == nil && len(b) > 0 {
		var m int
		err = q.withDeadline(func() (err error) {
			m, err = q.writeChunks(b[:min(len(b), clientconn.Portion)])
			return err
		})
		n, b = n+m, b[m:]
	}
	return n, err
}

// FlushError sends what was written so far. For an HTTP/2 stream it waits for
// space in the client's window, so it has a deadline, too.
func (q *Request) FlushError() error {
	if q.status == 0 {
		q.WriteHeader(http.StatusOK)
	}
	if !q.isStream {
		return q.control.Flush()
	}
	return q.withDeadline(q.control.Flush)
}

// Deliver completes the answer, and waits until an HTTP/2 answer has been sent
// completely. The request keeps its place in the meantime.
func (q *Request) Deliver() {
	switch {
	case q.isStream:
		_ = q.FlushError()
	case q.status == 0:
		q.WriteHeader(http.StatusOK)
	}
}

// writeChunks writes b in chunks. Each completed chunk shows that the client's
// window had space. So the wait for the client is measured from the last
// completed chunk.
func (q *Request) writeChunks(b []byte) (n int, err error) {
	for err == nil && len(b) > 0 {
		var m int
		m, err = q.ResponseWriter.Write(b[:min(len(b), chunk)])
		n, b = n+m, b[m:]
		q.setWriteStart(time.Now())
	}
	return n, err
}

// withDeadline calls write, which has to end before a deadline.
func (q *Request) withDeadline(write func() error) error {
	q.beginWrite(time.Now())
	defer q.endWrite()
	return write()
}
