package worker

import (
	"net"
	"sync"
	"time"

	"schedrestd/ipc"
)

// watch follows how far each connection has come, tells the parent of what lasts, and ends those
// that should give way. What is over in a moment is not mentioned, so that a client that keeps its
// connection busy costs no message.
type watch struct {
	tell  func(ipc.Message) error
	hurry func(*course) // its requests have to get on; may be nil

	saying sync.Mutex // over a look and the message about it: nothing is said of a connection after Done

	mu      sync.Mutex
	list    map[uint64]*course
	changed []*course           // those whose stage may have to be told
	armed   bool                // the next look is on its way
	parting map[uint64]struct{} // asked to end, and not closed yet
}

// course is one connection, as far as it has come.
type course struct {
	id     uint64
	stage  ipc.Stage
	since  time.Time
	said   ipc.Stage // what the parent takes it for
	listed bool      // among changed
	asked  bool      // to give way: it ends with its next answer

	pausedUntil time.Time // its client is told to come back later

	requests int  // that are being answered
	over     bool // the connection is closed

	top   net.Conn // what http.Server reads from; nil until it does
	below net.Conn // the connection itself; nil until it is made
}

const (
	lasting = 40 * time.Millisecond // how long a stage lasts before it is told
	silence = time.Second           // … when the client has connected and said nothing yet: it may be slow, or many
	look    = 20 * time.Millisecond // how often one looks, while something changes
)

// isLasting tells whether c's stage has lasted, so that c may be asked to give way.
func (c *course) isLasting(now time.Time) bool {
	limit := lasting
	if h, ok := c.top.(*http1Conn); c.stage == ipc.Waiting && !(ok && h.begins.Load()) {
		limit = silence
	}
	return now.Sub(c.since) >= limit
}

func newWatch(tell func(ipc.Message) error) *watch {
	return &watch{tell: tell, list: map[uint64]*course{}, parting: map[uint64]struct{}{}}
}

// take says Taken of connection id, and follows it.
func (w *watch) take(id uint64) {
	w.saying.Lock()
	defer w.saying.Unlock()
	w.mu.Lock()
	c := &course{id: id, said: ipc.Answering}
	w.list[id] = c
	w.turn(c, ipc.Waiting)
	w.mu.Unlock()
	_ = w.tell(&ipc.Taken{ID: id}) // a failure means that the parent is gone
}

// end is called when connection id is closed. With HTTP/2 its requests may still be answered, for nobody. It counts as long as they are:
// its client can't go before it is told what he did, nor have more requests by coming anew.
func (w *watch) end(id uint64) {
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

// begin notes that one more request of c is being answered.
func (w *watch) begin(c *course) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.requests++
	w.turn(c, ipc.Answering)
}

// finish notes that one of them is not any more.
func (w *watch) finish(c *course) {
	w.mu.Lock()
	c.requests--
	last := c.requests == 0 && c.over
	w.mu.Unlock()
	if last {
		w.free(c.id)
	}
}

// free says Done of connection id, once.
func (w *watch) free(id uint64) {
	w.saying.Lock()
	defer w.saying.Unlock()
	w.mu.Lock()
	_, ok := w.list[id]
	delete(w.list, id)
	w.mu.Unlock()
	if ok {
		_ = w.tell(&ipc.Done{ID: id})
	}
}

// of is the course of connection id; nil when it is not followed.
func (w *watch) of(id uint64) *course {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.list[id]
}

// enter notes that c is in stage from now on.
func (w *watch) enter(c *course, stage ipc.Stage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn(c, stage)
}

// turn is enter with w.mu held.
func (w *watch) turn(c *course, stage ipc.Stage) {
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

// look tells what has lasted, and comes again while there is something that may.
func (w *watch) look() {
	w.saying.Lock()
	defer w.saying.Unlock()
	for _, m := range w.news(time.Now()) {
		_ = w.tell(m)
	}
}

func (w *watch) news(now time.Time) (list []*ipc.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := w.changed[:0]
	for _, c := range w.changed {
		switch {
		case w.list[c.id] != c: // it is done
		case !c.isLasting(now):
			left = append(left, c)
		default:
			c.listed = false
			if c.stage != c.said {
				c.said = c.stage
				list = append(list, &ipc.Progress{ID: c.id, Stage: c.stage})
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

// yield ends connection id, for whose slot somebody waits, unless a request on it is being
// answered: then it stays, ends with its next answer, and the parent is told.
func (w *watch) yield(id uint64) {
	w.saying.Lock()
	defer w.saying.Unlock()
	w.mu.Lock()
	c := w.list[id]
	if c == nil { // it is closed already
		w.mu.Unlock()
		return
	}
	answering, young, top, below := c.stage == ipc.Answering, !c.isLasting(time.Now()), c.top, c.below
	// One that has just come, or just been answered, is asked because no other is left. It
	// ends with its next answer: a client that sends a request every few milliseconds would
	// otherwise keep its connection for as long as it likes.
	c.asked = c.asked || young
	w.mu.Unlock()
	if answering {
		w.stay(c)
		return
	}
	if young {
		return
	}
	// Done needs what this holds.
	go w.dismiss(c, top, below)
}

// stay has c end with its next answer, and tells the parent that it can't now; w.saying is held.
func (w *watch) stay(c *course) {
	w.mu.Lock()
	told := w.list[c.id] != c || c.said == ipc.Answering
	c.asked, c.said = true, ipc.Answering
	delete(w.parting, c.id)
	if c.stage != ipc.Answering {
		w.turn(c, c.stage) // to be told again if it lasts
	}
	w.mu.Unlock()
	if w.hurry != nil {
		go w.hurry(c)
	}
	if !told {
		_ = w.tell(&ipc.Progress{ID: c.id, Stage: ipc.Answering})
	}
}

// dismiss ends a connection on which nothing is being answered. One that was begun is told why, and
// its client may take a moment to read that. Nobody waits for it, unless it were many: the slot
// is free before.
func (w *watch) dismiss(c *course, top, below net.Conn) {
	h, is1 := top.(*http1Conn)
	raw := connOf(below)
	switch {
	case raw != nil && raw.hasUnread(): // a request came just now
		w.saying.Lock()
		w.stay(c)
		w.saying.Unlock()
	case is1:
		soon := w.part(c.id)
		if !h.giveWay() { // a request came just now
			w.saying.Lock()
			w.stay(c)
			w.saying.Unlock()
		} else if soon {
			w.free(c.id)
		}
	case top != nil: // HTTP/2
		_ = top.Close()
	case below != nil: // in its handshake: no request has come
		_ = below.Close()
	}
}

// part counts connection id among those that are there beside the ones that have a slot. It reports
// false when there are too many.
func (w *watch) part(id uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.list[id] == nil || len(w.parting) >= mostParting {
		return false
	}
	w.parting[id] = struct{}{}
	return true
}

// mostParting leaves each connection that has a slot the descriptors that it may need.
const mostParting = 64

// rawOf is the connection of c as the parent handed it over.
func (w *watch) rawOf(c *course) *conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	return connOf(c.below)
}

// isAsked tells whether c should end with its next answer.
func (w *watch) isAsked(c *course) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return c.asked
}

// made notes the connection itself, and what http.Server has of it.
func (w *watch) made(id uint64, below, top net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.list[id]
	if c == nil {
		return
	}
	if c.below, c.top = below, top; top != nil {
		w.turn(c, ipc.Waiting) // after a handshake its time begins anew
	}
}
