package worker

import (
	"cmp"
	"io"
	"net/http"
	"sync"
	"time"
)

// A client decides how fast it sends a body and takes an answer, and as long as there is room
// nobody minds. When somebody waits for the slot or the place that it has, it must get on: a
// portion in each time of hurried. Else a few clients that do next to nothing, of HTTP/2 even one,
// would keep everybody out for as long as they like.
const (
	portion = 64 << 10 // bytes
	hurried = 5 * time.Second
)

// A client of HTTP/2 that gives a stream no window reads nothing at all, on a
// connection that is never full. An answer is written in chunks, to know such
// a stream from one that is read slowly: at the pace of a portion in the time
// of hurried, a chunk takes stalled at most. That is also longer than a
// window's update is on its way.
const (
	chunk   = portion / 4
	stalled = hurried / 4
)

// leftover is how long the rest of a body is listened to that no handler has read: its client may
// still be sending, and take the answer afterwards.
const leftover = time.Second

// pace is one request while it is being answered.
type pace struct {
	http.ResponseWriter
	control *http.ResponseController
	course  *course
	seat    *seat // nil: it needs none
	begun   time.Time
	conn    *conn      // nil: the parent did not hand it over
	body    *pacedBody // nil: the request has none
	status  int        // of the answer; 0: none was begun
	http2   bool       // a stream has limits of its own: that it waits for its client is no Write on the connection
	offend  func()     // called when its stream was stalled while others waited

	mu      sync.Mutex
	stall   time.Duration
	reading time.Time // until when the next of the body has to come; zero: nobody waits for it
	writing time.Time // since when a write waits for the client; zero: none does
	judged  time.Time // the value of writing for which dropStalled is called
	last    time.Time // until when the next piece of the body has to be there; zero: there is no hurry
	over    bool
	cut     bool // it has no more time
}

// newPace is the pace of r; r's body is to be read through it.
func (g *gate) newPace(w http.ResponseWriter, r *http.Request, c *course) *pace {
	p := &pace{ResponseWriter: w, control: http.NewResponseController(w), course: c, http2: r.ProtoMajor == 2, stall: g.server.stall, begun: time.Now(),
		offend: func() {}}
	p.seat, _ = r.Context().Value(seatKey{}).(*seat)
	if c != nil {
		p.conn = g.server.watch.rawOf(c)
		p.offend = func() { g.server.offences.stalled(c.id) }
	}
	if r.Body != nil && r.Body != http.NoBody {
		p.body = &pacedBody{ReadCloser: r.Body, pace: p}
		p.body.conn, _ = r.Context().Value(http1Key{}).(*http1Conn)
		r.Body = p.body
	}
	g.mu.Lock()
	g.inside[p] = struct{}{}
	g.mu.Unlock()
	return p
}

// leave is called when the handler is done, whatever became of it: the http.ResponseWriter is not to be
// used from then on.
func (g *gate) leave(p *pace) {
	g.mu.Lock()
	delete(g.inside, p)
	g.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.body != nil && !p.body.ended && !p.http2 {
		dropRest(p.control)
	}
}

// dropRest bounds the time for a body that nobody reads. net/http reads on in it once the handler is
// done, before it closes the connection, and by itself without a limit: whoever sends the half
// of a body, with a token or without, would keep his slot for good.
func dropRest(control *http.ResponseController) {
	_ = control.SetReadDeadline(time.Now().Add(leftover))
}

// hurry hurries the requests of c, or all of them.
func (g *gate) hurry(c *course) {
	var list []*pace
	g.mu.Lock()
	for p := range g.inside {
		if c == nil || p.course == c {
			list = append(list, p)
		}
	}
	g.mu.Unlock()
	for _, p := range list {
		p.hurry()
	}
	if c != nil && g.isPressed() {
		thin(list)
	}
}

// isPressed notes that somebody waits for a slot, and tells whether that has been so for a while.
func (g *gate) isPressed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if now.Sub(g.last) > hurried {
		g.pressed = now
	}
	g.last = now
	return now.Sub(g.pressed) >= hurried
}

// thin ends one of list whose identity has more than its share, when its client has had it for a while: with many
// that send and take as slowly as they may, one user would have all slots for good.
func thin(list []*pace) {
	for _, p := range list {
		if p.seat != nil && time.Since(p.begun) >= hurried && p.seat.IsOver() {
			p.end()
			return
		}
	}
}

// end gives a client no more time to send or to take anything.
func (p *pace) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	now := time.Now()
	p.cut, p.last = true, now
	if p.body != nil && !p.body.ended && p.writing.IsZero() {
		_ = p.control.SetReadDeadline(now)
		return
	}
	_ = p.control.SetWriteDeadline(now) // who takes an answer slowly is waited for right now
}

func (p *pace) hurry() {
	if p.conn != nil {
		p.conn.hurry()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	if since := p.writing; p.http2 && !since.IsZero() && !since.Equal(p.judged) {
		p.judged = since
		time.AfterFunc(time.Until(since.Add(stalled)), func() { p.dropStalled(since) })
	}
	if !p.last.IsZero() {
		return
	}
	p.stall = min(p.stall, hurried)
	p.last = time.Now().Add(p.stall)
	if !p.reading.IsZero() {
		_ = p.control.SetReadDeadline(earlier(p.reading, p.last))
	}
	if !p.writing.IsZero() {
		_ = p.control.SetWriteDeadline(p.last)
	}
}

// dropStalled resets the stream when the write that began to wait at since
// still waits for the client's window. It does not when the connection itself
// is full, or has something for us to read: that may be the window.
func (p *pace) dropStalled(since time.Time) {
	p.mu.Lock()
	drop := !p.over && !p.cut && p.writing.Equal(since) && !(p.conn != nil && (p.conn.isWriting() || p.conn.hasUnread()))
	p.cut = p.cut || drop
	p.mu.Unlock()
	if !drop {
		return
	}
	// When the client has to wait for this, that is known before its next
	// request gets the seat.
	p.offend()
	time.AfterFunc(verdict, p.end)
}

// verdict is how long the parent may take to answer an offence.
const verdict = 50 * time.Millisecond

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// SetReadDeadline is for http.ResponseController: the handler's limit for the next of the body.
func (p *pace) SetReadDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reading = t
	if !t.IsZero() && !p.last.IsZero() {
		t = earlier(t, p.last)
	}
	return p.control.SetReadDeadline(t)
}

// Unwrap is for http.ResponseController.
func (p *pace) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// WriteHeader notes the status.
func (p *pace) WriteHeader(status int) {
	if status >= http.StatusOK {
		p.status = status
	}
	p.ResponseWriter.WriteHeader(status)
}

// Write writes in pieces of which each has its own time.
func (p *pace) Write(b []byte) (n int, err error) {
	if !p.http2 {
		return p.ResponseWriter.Write(b)
	}
	for err == nil && len(b) > 0 {
		var m int
		err = p.timed(func() (err error) {
			m, err = p.writeChunks(b[:min(len(b), portion)])
			return err
		})
		n, b = n+m, b[m:]
	}
	return n, err
}

// flush has the client take the end of an HTTP/2 answer before its place is free.
func (p *pace) flush() {
	if p.http2 {
		_ = p.timed(p.control.Flush)
	}
}

// writeChunks writes b, and notes when the client's window had room for each
// chunk of it.
func (p *pace) writeChunks(b []byte) (n int, err error) {
	for err == nil && len(b) > 0 {
		var m int
		m, err = p.ResponseWriter.Write(b[:min(len(b), chunk)])
		n, b = n+m, b[m:]
		p.waits(time.Now())
	}
	return n, err
}

// timed bounds a write to a stream.
func (p *pace) timed(write func() error) error {
	now := time.Now()
	p.mu.Lock()
	p.writing = now
	_ = p.control.SetWriteDeadline(now.Add(p.stall))
	p.mu.Unlock()
	err := write()
	p.waits(time.Time{})
	return err
}

// waits notes since when a write waits for the client.
func (p *pace) waits(since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writing = since
}

// pacedBody counts what comes of a body.
type pacedBody struct {
	io.ReadCloser
	pace  *pace
	conn  *http1Conn // nil: it is HTTP/2's
	ended bool       // all of it was read; guarded by pace.mu
}

// Read reads, and gives time for the next piece in proportion.
func (b *pacedBody) Read(buf []byte) (int, error) {
	n, err := b.ReadCloser.Read(buf)
	if err != nil && err != io.EOF && b.conn != nil {
		err = cmp.Or(b.conn.brokenBody(), err) // http.Server keeps some errors to itself
	}
	b.pace.mu.Lock()
	defer b.pace.mu.Unlock()
	b.ended = b.ended || err == io.EOF
	if !b.pace.last.IsZero() && !b.pace.cut {
		b.pace.last = b.pace.last.Add(hurried * time.Duration(n) / portion)
	}
	return n, err
}
