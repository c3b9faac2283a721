package conns

import (
	"time"

	"schedrestd/ipc/work"
)

// maxUncounted limits the number of open connections that the dispatcher no longer
// counts, so that enough descriptors are left for the others.
const maxUncounted = 64

// Reclaim closes connection id, because another client needs its slot. If a
// request on the connection is being answered, Reclaim instead makes this
// answer the connection's last (see closeAfterAnswerLocked), and reports this to the
// dispatcher. If all requests on it wait for a change or for an accounting daemon,
// it makes them answer.
func (t *Table) Reclaim(id uint64) {
	t.mu.Lock()
	defer t.unlock()
	c := t.conns[id]
	if c == nil || !c.counted { // already closed
		return
	}
	switch c.stage {
	case work.Answering:
		t.closeAfterAnswerLocked(c)
		return
	case work.Watching, work.Calling:
		if c.reported != c.stage { // the dispatcher does not know yet that the slot is free
			t.reportStageLocked(c, c.stage)
			return
		}
		c.closing = true
		for q := range t.requests {
			if q.conn == c && q.stop != nil {
				q.stop()
				q.shortenLocked() // a stream may be waiting for a client that does not read
			}
		}
		return
	}
	// A connection is young if it was accepted, or its last request was
	// answered, only a moment ago. The dispatcher chooses a young connection
	// only if it has found no other to close. The connection then ends with its
	// next answer. Without this rule, a client that sends a request every few
	// milliseconds could keep its connection indefinitely.
	if !c.isLastingLocked(time.Now()) {
		c.closing = true
		return
	}
	go t.end(c) // closing a TLS connection may take a moment
}

// closeAfterAnswerLocked makes the next answer of c whose header is sent its
// last, and tells the dispatcher that c can't be closed now.
func (t *Table) closeAfterAnswerLocked(c *Conn) {
	c.closing = true
	t.reportStageLocked(c, work.Answering)
	if c.stage != work.Answering {
		t.setStageLocked(c, c.stage) // so that the stage is reported again if it lasts
	}
	t.pressLocked(c)
}

// end closes a connection on which no request is being answered. A client that
// has begun a request gets an error, and a moment to read it. The slot is
// normally freed before the error is sent. But if maxUncounted other connections
// are in this state, the slot is freed only when the connection is closed.
func (t *Table) end(c *Conn) {
	t.mu.Lock()
	conn, raw, http1 := c.conn, c.raw, c.http1
	t.mu.Unlock()
	if raw != nil {
		raw.Shorten() // crypto/tls may be writing, even without a request: its answer to a KeyUpdate
	}
	switch {
	case raw == nil: // not attached yet
	case raw.HasUnread(), http1 != nil && !http1.Reclaim(): // a request has just arrived
		t.mu.Lock()
		defer t.unlock()
		t.closeAfterAnswerLocked(c)
	case http1 != nil:
		t.mu.Lock()
		defer t.unlock()
		if t.uncounted < maxUncounted {
			t.reportDoneLocked(c)
		}
	default: // HTTP/2, or in its handshake
		_ = conn.Close()
	}
}
