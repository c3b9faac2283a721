package worker

import (
	"net"
	"sync"
	"time"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// connTracker tracks the state of each connection, reports lasting states to
// the dispatcher, and closes a connection when another client waits for its
// slot. It does not report short states, so that a busy connection costs no
// messages.
type connTracker struct {
	tell    func(ipc.Message) error
	shorten func(*connState) // shortens the deadlines of a connection's requests; may be nil

	saying sync.Mutex // held while a state is read and reported, so that no report about a connection follows its last one, Done

	mu      sync.Mutex
	list    map[uint64]*connState
	changed []*connState        // connections whose stage may have to be reported
	armed   bool                // whether the next call of look is scheduled
	parting map[uint64]struct{} // connections that have no slot any more and are not closed yet
}

// connState is the state of one connection.
type connState struct {
	id     uint64
	stage  work.Stage
	since  time.Time
	said   work.Stage // stage that was last reported to the dispatcher
	listed bool       // whether it is in changed
	asked  bool       // whether the next answer is the connection's last

	pausedUntil time.Time // time until which its client is blocked

	requests int  // number of requests in progress
	over     bool // whether the connection is closed

	top   net.Conn // the connection that http.Server reads; nil before http.Server gets it
	below net.Conn // the connection itself; nil before it is made
}

const (
	lasting = 40 * time.Millisecond // time after which a stage is reported
	silence = time.Second           // the same for a client that has connected and sent nothing yet: it may be slow, or many clients may connect together
	look    = 20 * time.Millisecond // interval in which stages are examined while some change
)

// isLasting reports whether c's stage has lasted long enough for c to be
// closed.
func (c *connState) isLasting(now time.Time) bool {
	limit := lasting
	if h, ok := c.top.(*http1Conn); c.stage == work.Waiting && !(ok && h.begins.Load()) {
		limit = silence
	}
	return now.Sub(c.since) >= limit
}

func newConnTracker(tell func(ipc.Message) error) *connTracker {
	return &connTracker{tell: tell, list: map[uint64]*connState{}, parting: map[uint64]struct{}{}}
}

// track reports to the dispatcher that this worker has taken the connection
// with number id, and starts to track it.
func (w *connTracker) track(id uint64) {
	w.saying.Lock()
	defer w.saying.Unlock()
	w.mu.Lock()
	c := &connState{id: id, said: work.Answering}
	w.list[id] = c
	w.setStage(c, work.Waiting)
	w.mu.Unlock()
	_ = w.tell(&work.Taken{ID: id}) // an error means that the dispatcher has exited
}

// end records that a connection is closed. With HTTP/2, its requests may still
// be running. The connection counts until these requests end. Otherwise a
// client could reconnect before its offences are reported, or exceed its limit
// of requests by reconnecting.
func (w *connTracker) end(id uint64) {
	w.mu.Lock()
	delete(w.parting, id)
	c := w.list[id]
	busy := c != nil && c.requests > 0
	if busy {
		c.over = true
	}
	w.mu.Unlock()
	if !busy {
		w.free(id)
	}
}

// begin records that another request of c is being answered.
func (w *connTracker) begin(c *connState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.requests++
	w.setStage(c, work.Answering)
}

// finish records that a request of c was answered.
func (w *connTracker) finish(c *connState) {
	w.mu.Lock()
	c.requests--
	last := c.requests == 0 && c.over
	w.mu.Unlock()
	if last {
		w.free(c.id)
	}
}

// free reports a connection as done, at most once.
func (w *connTracker) free(id uint64) {
	w.saying.Lock()
	defer w.saying.Unlock()
	w.mu.Lock()
	_, ok := w.list[id]
	delete(w.list, id)
	w.mu.Unlock()
	if ok {
		_ = w.tell(&work.Done{ID: id})
	}
}

// of returns the state of connection id, or nil if it is not tracked.
func (w *connTracker) of(id uint64) *connState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.list[id]
}

// enter records that c enters stage.
func (w *connTracker) enter(c *connState, stage work.Stage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setStage(c, stage)
}

// setStage sets the stage of c. The caller holds w.mu.
func (w *connTracker) setStage(c *connState, stage work.Stage) {
	c.stage, c.since = stage, time.Now()
	if c.listed {
		return
	}
	c.listed = true
	w.changed = append(w.changed, c)
	if !w.armed {
		w.armed = true
		time.AfterFunc(look, w.look)
	}
}

// look reports the stages that have lasted long enough. It schedules itself
// again as long as other stages may have to be reported.
func (w *connTracker) look() {
	w.saying.Lock()
	defer w.saying.Unlock()
	for _, m := range w.news(time.Now()) {
		_ = w.tell(m)
	}
}

func (w *connTracker) news(now time.Time) (list []*work.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := w.changed[:0]
	for _, c := range w.changed {
		switch {
		case w.list[c.id] != c: // the connection is done
		case !c.isLasting(now):
			left = append(left, c)
		default:
			c.listed = false
			if c.stage != c.said {
				c.said = c.stage
				list = append(list, &work.Progress{ID: c.id, Stage: c.stage})
			}
		}
	}
	clear(w.changed[len(left):])
	w.changed = left
	if w.armed = len(left) > 0; w.armed {
		time.AfterFunc(look, w.look)
	}
	return list
}

// yield closes a connection because another client waits for its slot. If a
// request on the connection is being answered, yield instead makes the answer
// the connection's last, and reports this to the dispatcher.
func (w *connTracker) yield(id uint64) {
	w.saying.Lock()
	defer w.saying.Unlock()
	w.mu.Lock()
	c := w.list[id]
	if c == nil { // already closed
		w.mu.Unlock()
		return
	}
	answering, young, top, below := c.stage == work.Answering, !c.isLasting(time.Now()), c.top, c.below
	// The dispatcher chooses a connection that has just been accepted or
	// answered only if no other connection is left. Such a connection ends with
	// its next answer. Otherwise a client that sends a request every few
	// milliseconds could keep its connection indefinitely.
	c.asked = c.asked || young
	w.mu.Unlock()
	if answering {
		w.stay(c)
		return
	}
	if young {
		return
	}
	// dismiss has its own goroutine, because it takes the lock w.saying, which
	// is held here, to report that the connection is done.
	go w.dismiss(c, top, below)
}

// stay makes the next answer the last one of c, and reports to the dispatcher
// that c can't be closed now. The caller holds w.saying.
func (w *connTracker) stay(c *connState) {
	w.mu.Lock()
	told := w.list[c.id] != c || c.said == work.Answering
	c.asked, c.said = true, work.Answering
	delete(w.parting, c.id)
	if c.stage != work.Answering {
		w.setStage(c, c.stage) // so that the stage is reported again if it lasts
	}
	w.mu.Unlock()
	if w.shorten != nil {
		go w.shorten(c)
	}
	if !told {
		_ = w.tell(&work.Progress{ID: c.id, Stage: work.Answering})
	}
}

// dismiss closes a connection on which no request is being answered. A client
// that has begun a request gets an answer with the reason, and a moment to read
// it. The slot is normally freed before the answer, but not while mostParting
// other connections without a slot are still open.
func (w *connTracker) dismiss(c *connState, top, below net.Conn) {
	h, is1 := top.(*http1Conn)
	raw := connOf(below)
	switch {
	case raw != nil && raw.hasUnread(): // a request has just arrived
		w.saying.Lock()
		w.stay(c)
		w.saying.Unlock()
	case is1:
		soon := w.part(c.id)
		if !h.giveWay() { // a request has just arrived
			w.saying.Lock()
			w.stay(c)
			w.saying.Unlock()
		} else if soon {
			w.free(c.id)
		}
	case top != nil: // HTTP/2
		_ = top.Close()
	case below != nil: // in its handshake, so no request has arrived
		_ = below.Close()
	}
}

// part adds a connection to those that have lost their slot but stay open for a
// moment. It returns false if there are too many of them.
func (w *connTracker) part(id uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.list[id] == nil || len(w.parting) >= mostParting {
		return false
	}
	w.parting[id] = struct{}{}
	return true
}

// mostParting limits the connections without a slot, so that enough descriptors
// are left for connections with a slot.
const mostParting = 64

// rawOf returns the conn of c, without wrappers.
func (w *connTracker) rawOf(c *connState) *conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	return connOf(c.below)
}

// isAsked reports whether c should end with its next answer.
func (w *connTracker) isAsked(c *connState) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return c.asked
}

// made records a connection (below), and its wrapper that http.Server reads
// (top).
func (w *connTracker) made(id uint64, below, top net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.list[id]
	if c == nil {
		return
	}
	if c.below, c.top = below, top; top != nil {
		w.setStage(c, work.Waiting) // the time in the stage Waiting starts again after a handshake
	}
}
