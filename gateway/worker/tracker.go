package worker

import (
	"net"
	"sync"
	"time"

	"schedrestd/gateway/worker/clientconn"
	"schedrestd/gateway/worker/http1server"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// A connTracker tracks the stage of each connection. It reports a stage to the
// dispatcher only after the stage has lasted for a moment, so that a busy
// connection causes no messages. It also closes a connection when another
// client needs the connection's slot.
type connTracker struct {
	send    func(ipc.Message) error
	shorten func(*connState) // shortens the deadlines of a connection's requests; may be nil

	reportMu sync.Mutex // held while a state is read and reported, so that ConnectionClosed is the last report about a connection

	mu              sync.Mutex // guards the fields below, and each connState; reportMu is locked first
	list            map[uint64]*connState
	changed         []*connState        // connections whose stage may have to be reported
	reportScheduled bool                // whether the next call of reportStages is scheduled
	detached        map[uint64]struct{} // connections that no longer have a slot but are still open
}

// connState is the state of one connection.
type connState struct {
	id        uint64
	stage     work.Stage
	since     time.Time
	reported  work.Stage // stage that was last reported to the dispatcher
	inChanged bool       // whether it is in connTracker.changed
	closing   bool       // whether the next answer is the connection's last
	silent    bool       // whether neither its stages nor its offences are reported, because it is the worker's only client

	pausedUntil time.Time // time until which its client is blocked

	requests int  // number of requests in progress
	closed   bool // whether the connection is closed

	conn  net.Conn          // the connection, with the layers around it that exist so far; nil before it is made
	http1 *http1server.Conn // nil if it is not an HTTP/1 connection, or not yet
}

const (
	reportDelay       = 40 * time.Millisecond // time after which a stage is reported
	silentReportDelay = time.Second           // the same for a client that has sent nothing yet, perhaps only because it is slow
	reportInterval    = 20 * time.Millisecond // interval at which changed stages are examined
)

// isLasting reports whether c's stage has lasted so long that c may be closed.
func (c *connState) isLasting(now time.Time) bool {
	limit := reportDelay
	if c.stage == work.Waiting && !(c.http1 != nil && c.http1.HasBegun()) {
		limit = silentReportDelay
	}
	return now.Sub(c.since) >= limit
}

func newConnTracker(send func(ipc.Message) error) *connTracker {
	return &connTracker{send: send, list: map[uint64]*connState{}, detached: map[uint64]struct{}{}}
}

// track informs the dispatcher that this worker has taken connection id, and
// starts to track the connection.
func (t *connTracker) track(id uint64) { t.trackConn(&connState{id: id}) }

func (t *connTracker) trackConn(c *connState) {
	t.reportMu.Lock()
	defer t.reportMu.Unlock()
	t.mu.Lock()
	c.reported = work.Answering
	t.list[c.id] = c
	t.setStage(c, work.Waiting)
	t.mu.Unlock()
	_ = t.send(&work.ConnectionTaken{ID: c.id}) // an error means that the dispatcher has exited
}

// recordClose records that a connection is closed. With HTTP/2, its requests
// may still be running. The connection counts as open until these requests end.
// Otherwise a client that reconnects could escape the penalty for its offences,
// or exceed its limit on requests.
func (t *connTracker) recordClose(id uint64) {
	t.mu.Lock()
	delete(t.detached, id)
	c := t.list[id]
	busy := c != nil && c.requests > 0
	if busy {
		c.closed = true
	}
	t.mu.Unlock()
	if !busy {
		t.reportDone(id)
	}
}

// beginRequest records that another request of c is being answered.
func (t *connTracker) beginRequest(c *connState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.requests++
	t.setStage(c, work.Answering)
}

// finishRequest records that a request of c was answered.
func (t *connTracker) finishRequest(c *connState) {
	t.mu.Lock()
	c.requests--
	last := c.requests == 0 && c.closed
	t.mu.Unlock()
	if last {
		t.reportDone(c.id)
	}
}

// reportDone reports that a connection is done. It reports each connection at
// most once.
func (t *connTracker) reportDone(id uint64) {
	t.reportMu.Lock()
	defer t.reportMu.Unlock()
	t.mu.Lock()
	_, ok := t.list[id]
	delete(t.list, id)
	t.mu.Unlock()
	if ok {
		_ = t.send(&work.ConnectionClosed{ID: id})
	}
}

// lookup returns the state of connection id, or nil if it is not tracked.
func (t *connTracker) lookup(id uint64) *connState {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.list[id]
}

// updateStage records that c enters stage.
func (t *connTracker) updateStage(c *connState, stage work.Stage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setStage(c, stage)
}

// setStage sets the stage of c. The caller holds t.mu.
func (t *connTracker) setStage(c *connState, stage work.Stage) {
	c.stage, c.since = stage, time.Now()
	if c.inChanged || c.silent {
		return
	}
	c.inChanged = true
	t.changed = append(t.changed, c)
	if !t.reportScheduled {
		t.reportScheduled = true
		time.AfterFunc(reportInterval, t.reportStages)
	}
}

// reportStages reports the stages that have lasted long enough. It schedules
// its next call if other stages may still have to be reported.
func (t *connTracker) reportStages() {
	t.reportMu.Lock()
	defer t.reportMu.Unlock()
	for _, m := range t.dueReports(time.Now()) {
		_ = t.send(m)
	}
}

func (t *connTracker) dueReports(now time.Time) (list []*work.Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	remaining := t.changed[:0]
	for _, c := range t.changed {
		switch {
		case t.list[c.id] != c: // the connection is done
		case !c.isLasting(now):
			remaining = append(remaining, c)
		default:
			c.inChanged = false
			if c.stage != c.reported {
				c.reported = c.stage
				list = append(list, &work.Progress{ID: c.id, Stage: c.stage})
			}
		}
	}
	clear(t.changed[len(remaining):])
	t.changed = remaining
	if t.reportScheduled = len(remaining) > 0; t.reportScheduled {
		time.AfterFunc(reportInterval, t.reportStages)
	}
	return list
}

// reclaimID closes connection id, because another client needs the connection's
// slot. If a request on the connection is being answered, reclaimID instead
// makes this answer the connection's last, and reports this to the dispatcher.
func (t *connTracker) reclaimID(id uint64) {
	t.reportMu.Lock()
	defer t.reportMu.Unlock()
	t.mu.Lock()
	c := t.list[id]
	if c == nil { // already closed
		t.mu.Unlock()
		return
	}
	answering, young, conn, http1 := c.stage == work.Answering, !c.isLasting(time.Now()), c.conn, c.http1
	// A connection is young if it was accepted, or its last request was
	// answered, only a moment ago. The dispatcher chooses a young connection
	// only if it has found no other to close. The connection then ends with its
	// next answer. Without this rule, a client that sends a request every few
	// milliseconds could keep its connection indefinitely.
	c.closing = c.closing || young
	t.mu.Unlock()
	if answering {
		t.closeAfterAnswer(c)
		return
	}
	if young {
		return
	}
	// reclaim runs in another goroutine, because it locks t.reportMu, which
	// this goroutine holds.
	go t.reclaim(c, conn, http1)
}

// closeAfterAnswer makes the next answer of c its last, and tells the
// dispatcher that c can't be closed now. The caller holds t.reportMu.
func (t *connTracker) closeAfterAnswer(c *connState) {
	t.mu.Lock()
	reported := t.list[c.id] != c || c.reported == work.Answering
	c.closing, c.reported = true, work.Answering
	delete(t.detached, c.id)
	if c.stage != work.Answering {
		t.setStage(c, c.stage) // so that the stage is reported again if it lasts
	}
	t.mu.Unlock()
	if t.shorten != nil {
		go t.shorten(c)
	}
	if !reported {
		_ = t.send(&work.Progress{ID: c.id, Stage: work.Answering})
	}
}

// reclaim closes a connection on which no request is being answered. A client
// that has begun a request gets an error, and a moment to read it. The slot is
// normally freed before the error is sent. But if maxDetached other connections
// without a slot are still open, the slot is freed only when the connection is
// closed.
func (t *connTracker) reclaim(c *connState, conn net.Conn, http1 *http1server.Conn) {
	raw := clientconn.Of(conn)
	switch {
	case raw != nil && raw.HasUnread(): // a request has just arrived
		t.reportMu.Lock()
		t.closeAfterAnswer(c)
		t.reportMu.Unlock()
	case http1 != nil:
		detached := t.detach(c.id)
		if !http1.Reclaim() { // a request has just arrived
			t.reportMu.Lock()
			t.closeAfterAnswer(c)
			t.reportMu.Unlock()
		} else if detached {
			t.reportDone(c.id)
		}
	case conn != nil: // HTTP/2, or in its handshake
		_ = conn.Close()
	}
}

// detach records that a connection stays open for a moment without a slot. It
// returns false if there are too many such connections.
func (t *connTracker) detach(id uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.list[id] == nil || len(t.detached) >= maxDetached {
		return false
	}
	t.detached[id] = struct{}{}
	return true
}

// maxDetached limits the number of connections that are open without a slot, so
// that enough descriptors are left for the others.
const maxDetached = 64

// rawConn returns the conn inside c.
func (t *connTracker) rawConn(c *connState) *clientconn.Conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return clientconn.Of(c.conn)
}

// isClosing reports whether c must end with its next answer.
func (t *connTracker) isClosing(c *connState) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return c.closing
}

// setConn records the layers around connection id that exist now. The argument
// http1 is nil unless it is an HTTP/1 connection.
func (t *connTracker) setConn(id uint64, conn net.Conn, http1 *http1server.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.list[id]; c != nil {
		c.conn, c.http1 = conn, http1
		t.setStage(c, work.Waiting) // the time in the stage Waiting starts again after a handshake
	}
}
