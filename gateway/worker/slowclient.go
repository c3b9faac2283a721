package worker

import (
	"io"
	"net/http"
	"sync"
	"time"

	"schedrestd/gateway/worker/clientconn"
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

// slowClient enforces the deadlines of a client in one request.
type slowClient struct {
	http.ResponseWriter
	control   *http.ResponseController
	connState *connState
	inflight  *inflight // nil if the request needs no place
	start     time.Time
	conn      *clientconn.Conn // nil if the connection did not come from the dispatcher
	body      *slowBody        // nil if the request has no body
	status    int              // status of the answer; 0 before its header is sent
	http2     bool             // whether the request is an HTTP/2 stream, which has its own limits because it can stall while its connection does not
	offend    func()           // called when the stream has stalled while other clients wait

	mu           sync.Mutex // guards the fields below
	stall        time.Duration
	readDeadline time.Time // when the next piece of the body is due; zero if the handler does not wait for it
	writeStart   time.Time // when the current write began to wait for the client; zero if no write is in progress
	checkedWrite time.Time // value of writeStart for which dropStalled was scheduled
	bodyDeadline time.Time // when the next piece of the body is due while other clients wait; zero if no piece is due
	finished     bool
	aborted      bool // the client missed its deadline
}

// newSlowClient returns the slowClient of r. It wraps r's body, so that each
// read of the body extends the deadline.
func (l *requestLimiter) newSlowClient(w http.ResponseWriter, r *http.Request, c *connState) *slowClient {
	p := &slowClient{
		ResponseWriter: w,
		control:        http.NewResponseController(w),
		connState:      c,
		http2:          r.ProtoMajor == 2,
		stall:          l.server.stall,
		start:          time.Now(),
		offend:         func() {},
	}
	p.inflight, _ = r.Context().Value(inflightKey{}).(*inflight)
	if c != nil {
		p.conn = l.server.tracker.rawConn(c)
		p.offend = func() { l.server.offences.reportStalled(c.id) }
	}
	if r.Body != nil && r.Body != http.NoBody {
		p.body = &slowBody{ReadCloser: r.Body, client: p}
		r.Body = p.body
	}
	l.mu.Lock()
	l.active[p] = struct{}{}
	l.mu.Unlock()
	return p
}

// finish records that the request's handler has returned. The request's
// http.ResponseWriter must not be used afterwards.
func (l *requestLimiter) finish(p *slowClient) {
	l.mu.Lock()
	delete(l.active, p)
	l.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finished = true
}

// shortenDeadlines shortens the deadlines of the requests of c, or of all
// requests if c is nil.
func (l *requestLimiter) shortenDeadlines(c *connState) {
	var list []*slowClient
	l.mu.Lock()
	for p := range l.active {
		if c == nil || p.connState == c {
			list = append(list, p)
		}
	}
	l.mu.Unlock()
	for _, p := range list {
		p.shorten()
	}
	if c != nil && l.underPressure() {
		abortOverShare(list)
	}
}

// underPressure records that a connection waits for a slot. It reports whether
// connections have been waiting for at least clientconn.PortionTime.
func (l *requestLimiter) underPressure() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.lastWait) > clientconn.PortionTime {
		l.waitingSince = now
	}
	l.lastWait = now
	return now.Sub(l.waitingSince) >= clientconn.PortionTime
}

// abortOverShare aborts at most one request in list. The request must be older
// than clientconn.PortionTime, and its user must hold more than half of the places for
// requests. Without this rule, a user with many requests that are just fast
// enough could keep all slots permanently.
func abortOverShare(list []*slowClient) {
	for _, p := range list {
		if p.inflight != nil && time.Since(p.start) >= clientconn.PortionTime && p.inflight.IsOverShare() {
			p.abort()
			return
		}
	}
}

// abort makes all reads and writes of the request fail.
func (p *slowClient) abort() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished {
		return
	}
	now := time.Now()
	p.aborted, p.bodyDeadline = true, now
	if p.body != nil && !p.body.ended && p.writeStart.IsZero() {
		_ = p.control.SetReadDeadline(now)
		return
	}
	_ = p.control.SetWriteDeadline(now) // a write may be waiting for a client that reads slowly
}

func (p *slowClient) shorten() {
	if p.conn != nil {
		p.conn.Shorten()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished {
		return
	}
	if since := p.writeStart; p.http2 && !since.IsZero() && !since.Equal(p.checkedWrite) {
		p.checkedWrite = since
		time.AfterFunc(time.Until(since.Add(stallTime)), func() { p.dropStalled(since) })
	}
	if !p.bodyDeadline.IsZero() {
		return
	}
	p.stall = min(p.stall, clientconn.PortionTime)
	p.bodyDeadline = time.Now().Add(p.stall)
	if !p.readDeadline.IsZero() {
		_ = p.control.SetReadDeadline(earlier(p.readDeadline, p.bodyDeadline))
	}
	if !p.writeStart.IsZero() {
		_ = p.control.SetWriteDeadline(p.bodyDeadline)
	}
}

// dropStalled resets the stream if its current write has been waiting for the
// client's window since the given time. It does nothing if the connection
// itself is full, or has unread input, which may contain the window update.
func (p *slowClient) dropStalled(since time.Time) {
	p.mu.Lock()
	drop := !p.finished && !p.aborted && p.writeStart.Equal(since) &&
		!(p.conn != nil && (p.conn.IsWriting() || p.conn.HasUnread()))
	p.aborted = p.aborted || drop
	p.mu.Unlock()
	if !drop {
		return
	}
	// The stream is not reset at once. If the dispatcher blocks the client for
	// the offence, the worker must learn of the block before the reset makes
	// room for the client's next request.
	p.offend()
	time.AfterFunc(reactionTime, p.abort)
}

// reactionTime is how long the dispatcher may take to react to a reported
// offence.
const reactionTime = 50 * time.Millisecond

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// SetReadDeadline sets the deadline by which the handler needs the next piece
// of the body. http.ResponseController calls it.
func (p *slowClient) SetReadDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readDeadline = t
	if !t.IsZero() && !p.bodyDeadline.IsZero() {
		t = earlier(t, p.bodyDeadline)
	}
	return p.control.SetReadDeadline(t)
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (p *slowClient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *slowClient) WriteHeader(status int) {
	if status >= http.StatusOK {
		p.status = status
	}
	p.ResponseWriter.WriteHeader(status)
}

// Write writes b. It writes to an HTTP/2 stream in pieces, each with its own
// deadline.
func (p *slowClient) Write(b []byte) (n int, err error) {
	if !p.http2 {
		return p.ResponseWriter.Write(b)
	}
	for err == nil && len(b) > 0 {
		var m int
		err = p.withDeadline(func() (err error) {
			m, err = p.writeChunks(b[:min(len(b), clientconn.Portion)])
			return err
		})
		n, b = n+m, b[m:]
	}
	return n, err
}

// flush waits until an HTTP/2 answer has been sent completely. It may have to
// wait for space in the client's window. The request keeps its place in the
// meantime.
func (p *slowClient) flush() {
	if p.http2 {
		_ = p.withDeadline(p.control.Flush)
	}
}

// writeChunks writes b in chunks. Each completed chunk shows that the client's
// window had space. So the wait for the client is measured from the last
// completed chunk.
func (p *slowClient) writeChunks(b []byte) (n int, err error) {
	for err == nil && len(b) > 0 {
		var m int
		m, err = p.ResponseWriter.Write(b[:min(len(b), chunk)])
		n, b = n+m, b[m:]
		p.setWriteStart(time.Now())
	}
	return n, err
}

// withDeadline sets the deadline for a write to a stream, and calls write.
func (p *slowClient) withDeadline(write func() error) error {
	now := time.Now()
	p.mu.Lock()
	p.writeStart = now
	_ = p.control.SetWriteDeadline(now.Add(p.stall))
	p.mu.Unlock()
	err := write()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writeStart = time.Time{}
	_ = p.control.SetWriteDeadline(time.Time{})
	return err
}

// setWriteStart records when a write began to wait for the client.
func (p *slowClient) setWriteStart(since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writeStart = since
}

// slowBody counts the bytes of a body as they arrive.
type slowBody struct {
	io.ReadCloser
	client *slowClient
	ended  bool // all of it was read; guarded by client.mu
}

// Read reads from the body. The bytes that arrive extend the deadline, in
// proportion to their number.
func (b *slowBody) Read(buf []byte) (int, error) {
	n, err := b.ReadCloser.Read(buf)
	b.client.mu.Lock()
	defer b.client.mu.Unlock()
	b.ended = b.ended || err == io.EOF
	if !b.client.bodyDeadline.IsZero() && !b.client.aborted {
		b.client.bodyDeadline = b.client.bodyDeadline.Add(clientconn.PortionTime * time.Duration(n) / clientconn.Portion)
	}
	return n, err
}
