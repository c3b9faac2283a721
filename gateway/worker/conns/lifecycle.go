package conns

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"schedrestd/gateway/worker/clientconn"
	"schedrestd/gateway/worker/count"
	"schedrestd/internal/limit"
	"schedrestd/internal/penalty"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// NewTable returns a Table without connections. It calls send for each message
// to the dispatcher, from one goroutine at a time.
func NewTable(a work.Admission, counts *count.Counters, send func(ipc.Message) error) *Table {
	rules := penalty.Rules{Threshold: a.Threshold, Cost: [penalty.Kinds]time.Duration{penalty.Auth: a.Auth}}
	t := &Table{
		counts:    counts,
		penalties: a.Threshold != 0,
		conns:     map[uint64]*Conn{},
		requests:  map[*Request]struct{}{},
		admitted:  map[*Request]struct{}{},
		forwarded: penalty.New[netip.Addr](limit.ForwardedDebts, rules),
		rejected:  rate.NewBuckets[uint64](limit.RejectedCredentials),
		reports:   rate.New(limit.OffenceReports, time.Now()),
		lines:     rate.New(limit.OffenceLines, time.Now()),
	}
	t.outbox, t.closed = outbox{send: send, sent: sync.NewCond(&t.mu)}, sync.NewCond(&t.mu)
	return t
}

// Add adds connection id, and tells the dispatcher that this worker has taken
// it. The caller must call Closed when it is closed.
func (t *Table) Add(id uint64) *Conn { return t.add(&Conn{id: id}) }

// AddSilent adds connection id as the only one of this worker, so that the
// dispatcher need not know more of it than its end.
func (t *Table) AddSilent(id uint64) *Conn { return t.add(&Conn{id: id, silent: true}) }

func (t *Table) add(c *Conn) *Conn {
	t.mu.Lock()
	defer t.unlock()
	t.open++
	c.table, c.reported, c.counted = t, work.Answering, true
	t.conns[c.id] = c
	t.setStageLocked(c, work.Waiting)
	t.outbox.addLocked(&work.ConnectionTaken{ID: c.id})
	return c
}

// Attach records the connection raw, and conn, which is raw with the layers around
// it that exist now. The argument http1 is nil unless it is an HTTP/1 connection.
func (c *Conn) Attach(raw *clientconn.Conn, conn net.Conn, http1 Engine) {
	t := c.table
	t.mu.Lock()
	c.conn, c.raw, c.http1 = conn, raw, http1
	t.setStageLocked(c, work.Waiting) // the time in the stage Waiting starts again after a handshake
	t.unlock()
}

// Begun records that a part of the first request has arrived.
func (c *Conn) Begun() {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.begun = true
}

// Idle records that a connection has no request in progress.
func (c *Conn) Idle() {
	c.raw.Restore()
	c.table.mu.Lock()
	defer c.table.unlock()
	c.table.setStageLocked(c, work.Idle)
}

// Closed records that the connection is closed. With HTTP/2, its requests may
// still be running. The dispatcher counts the connection until these requests end.
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
	if !c.counted {
		t.uncounted--
	}
	t.removeLocked(c)
	t.endOneLocked()
}

// removeLocked removes a connection if it is closed and has no requests.
func (t *Table) removeLocked(c *Conn) {
	if c.closed && c.requests == 0 {
		t.reportDoneLocked(c)
		delete(t.conns, c.id)
	}
}

// reportDoneLocked reports to the dispatcher, once, that it need not count the
// connection any longer.
func (t *Table) reportDoneLocked(c *Conn) {
	if !c.counted {
		return
	}
	if c.counted = false; !c.closed {
		t.uncounted++
	}
	t.outbox.addLocked(&work.ConnectionDone{ID: c.id})
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
