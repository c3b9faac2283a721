// Package conns owns the state of a worker's connections: their stages, the
// requests on them, the deadlines of slow clients, their offences, and the
// drain. It is the only part of the worker that several goroutines change.
//
// One mutex guards all of it (Table.mu). It is held only for a moment: while it
// is held, no message is sent, and no function is called that may wait. The
// messages to the dispatcher leave in the order in which the state changed
// (type outbox).
//
// A connection is added when the dispatcher passes it. It then goes through
// these stages (work.Stage), which the dispatcher learns only if they last, so
// that a busy connection causes no messages:
//
//	Waiting    from the beginning until the first request
//	Answering  while a request is being answered
//	Idle       until the next request
//
// A connection normally has a slot of the dispatcher's until it is closed. If
// another client needs the slot, the dispatcher reclaims it: a connection
// without a request then gives up the slot at once, even if it stays open for a
// moment.
package conns

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"schedrestd/gateway/worker/clientconn"
	"schedrestd/gateway/worker/count"
	"schedrestd/internal/penalty"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// A Table has the connections of a worker.
type Table struct {
	counts    *count.Counters
	penalties bool           // whether offences are reported
	open      sync.WaitGroup // connections that are not closed

	// mu guards the fields below, and the fields of each Conn and each Request.
	mu              sync.Mutex
	conns           map[uint64]*Conn // those that are open or have a slot
	changed         []*Conn          // connections whose stage may have to be reported
	reportScheduled bool             // whether the next call of reportStages is scheduled
	slotless        int              // number of open connections without a slot
	outbox          outbox

	requests     map[*Request]struct{} // requests in progress
	watching     bool                  // whether the next call of watchHangups is scheduled
	waitingSince time.Time             // when connections began to wait for a slot, as far as is known
	lastWait     time.Time             // last time at which a connection was known to be waiting

	retired, draining, stopping bool

	forwarded *penalty.Table[netip.Addr] // sources behind proxies, which the dispatcher can't tell apart
	rejected  *penalty.Memory            // credentials that were answered 401
	reports   *rate.Bucket               // limits reports of offences
	lines     *rate.Bucket               // limits log lines about offences
}

// NewTable returns a Table without connections. It calls send for each message
// to the dispatcher, from one goroutine at a time.
func NewTable(a work.Admission, counts *count.Counters, send func(ipc.Message) error) *Table {
	rules := penalty.Rules{Threshold: a.Threshold, Cost: [penalty.Kinds]time.Duration{penalty.Auth: a.Auth}}
	t := &Table{
		counts:    counts,
		penalties: a.Threshold != 0,
		conns:     map[uint64]*Conn{},
		requests:  map[*Request]struct{}{},
		forwarded: penalty.New[netip.Addr](rules, maxForwarded),
		rejected:  penalty.NewMemory(maxRejected),
		reports:   rate.New(reportBurst, reportRate, time.Now()),
		lines:     rate.New(50, 5, time.Now()),
	}
	t.outbox = outbox{send: send, sent: sync.NewCond(&t.mu)}
	return t
}

// unlock unlocks mu, and sends the messages that were added meanwhile.
func (t *Table) unlock() { t.outbox.flush(&t.mu) }

// A Conn is a connection in a Table.
type Conn struct {
	table  *Table
	id     uint64 // the number that the dispatcher gave it
	silent bool   // neither its stages nor its offences are reported, because it is the worker's only client

	stage     work.Stage
	since     time.Time  // when the stage began
	reported  work.Stage // stage that was last reported to the dispatcher
	inChanged bool       // whether it is in Table.changed
	hasSlot   bool       // whether the dispatcher counts it
	closed    bool       // whether it is closed
	requests  int        // number of requests in progress
	closing   bool       // whether the next answer is its last

	pausedUntil time.Time // time until which its client is blocked

	conn  net.Conn         // the connection, with the layers around it that exist so far; nil before Attach
	raw   *clientconn.Conn // the lowest layer; nil before Attach
	http1 Engine           // nil if it is not an HTTP/1 connection, or not yet
}

// An Engine serves an HTTP/1 connection (package http1server). None of its
// methods waits for the client, except that they may close the connection.
type Engine interface {
	HasBegun() bool // whether a part of a request has arrived that was not answered yet
	Reclaim() bool  // see http1server.Conn.Reclaim
	Drain()
	StopReading()
	Cancel()
	Close() error
}

// Add adds connection id, and tells the dispatcher that this worker has taken
// it. The caller must call Closed when it is closed.
func (t *Table) Add(id uint64) *Conn { return t.add(&Conn{id: id}) }

// AddSilent adds connection id as the only one of this worker, so that the
// dispatcher need not know more of it than its end.
func (t *Table) AddSilent(id uint64) *Conn { return t.add(&Conn{id: id, silent: true}) }

func (t *Table) add(c *Conn) *Conn {
	t.open.Add(1)
	t.mu.Lock()
	defer t.unlock()
	c.table, c.reported, c.hasSlot = t, work.Answering, true
	t.conns[c.id] = c
	t.setStage(c, work.Waiting)
	t.outbox.add(&work.ConnectionTaken{ID: c.id})
	return c
}

// Attach records the layers around the connection that exist now. The argument
// http1 is nil unless it is an HTTP/1 connection.
func (c *Conn) Attach(conn net.Conn, http1 Engine) {
	t := c.table
	t.mu.Lock()
	c.conn, c.raw, c.http1 = conn, clientconn.Of(conn), http1
	t.setStage(c, work.Waiting) // the time in the stage Waiting starts again after a handshake
	draining, stopping := t.draining, t.stopping
	t.unlock()
	if http1 != nil && draining {
		http1.Drain()
	}
	if http1 != nil && stopping {
		http1.StopReading()
	}
}

// Idle records that a connection has no request in progress.
func (c *Conn) Idle() {
	c.raw.Restore()
	c.table.mu.Lock()
	defer c.table.unlock()
	c.table.setStage(c, work.Idle)
}

// Closed records that the connection is closed. With HTTP/2, its requests may
// still be running. The connection keeps its slot until these requests end.
// Otherwise a client that reconnects could escape the penalty for its offences,
// or exceed its limit on requests.
func (c *Conn) Closed() {
	t := c.table
	t.mu.Lock()
	defer t.unlock()
	if c.closed {
		return
	}
	c.closed = true
	if !c.hasSlot {
		t.slotless--
	}
	t.remove(c)
	t.open.Done()
}

// remove removes a connection that is closed and has no requests. The caller
// holds mu.
func (t *Table) remove(c *Conn) {
	if c.closed && c.requests == 0 {
		t.releaseSlot(c)
		delete(t.conns, c.id)
	}
}

// releaseSlot gives the connection's slot back to the dispatcher. The caller
// holds mu.
func (t *Table) releaseSlot(c *Conn) {
	if !c.hasSlot {
		return
	}
	if c.hasSlot = false; !c.closed {
		t.slotless++
	}
	t.outbox.add(&work.ConnectionClosed{ID: c.id})
}

// connKey is the context key of a request's Conn.
type connKey struct{}

// With returns a context for the requests on the connection.
func (c *Conn) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// From returns the connection of a request with the context ctx. There must be
// one.
func From(ctx context.Context) *Conn { return ctx.Value(connKey{}).(*Conn) }
