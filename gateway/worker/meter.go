package worker

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"schedrestd/handlers/rest"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/metric"
	"schedrestd/metric/label"
	"schedrestd/metric/table"
	"schedrestd/rpc/client"
	"schedrestd/rpc/message"
)

// A meter counts requests, bytes, and the worker's calls to daemons. A moment
// after a count changes, the meter sends all new counts to the dispatcher,
// which adds them up. So the totals are still correct after a worker has
// exited. A worker's latest counts are lost only if it is killed.
type meter struct {
	*table.Table
	send           func(ipc.Message, ...int) error
	extras         func() []extra // returns the counters that other parts keep
	cells          []atomic.Uint64
	requests       atomic.Int64 // requests in progress
	calls          atomic.Int64
	flushScheduled atomic.Bool

	sentMu sync.Mutex     // guards sent
	sent   map[int]uint64 // how much of each extra counter has been sent
}

// An extra is the total of a counter that another part of the worker keeps.
type extra struct {
	cell  int
	total uint64
}

// processMeter is the meter of this process, or nil if the gateway has no
// metrics. A process runs at most one worker, so this can be a global variable.
var processMeter atomic.Pointer[meter]

// flushDelay is how long counts are collected before they are sent.
const flushDelay = time.Second

func newMeter(send func(ipc.Message, ...int) error) *meter {
	t := table.New()
	return &meter{
		Table:  t,
		send:   send,
		extras: func() []extra { return nil },
		cells:  make([]atomic.Uint64, t.Cells),
		sent:   map[int]uint64{},
	}
}

// add adds n to a cell.
func (m *meter) add(cell int, n uint64) {
	m.cells[cell].Add(n)
	m.scheduleFlush()
}

// scheduleFlush schedules a flush after a change.
func (m *meter) scheduleFlush() {
	if m != nil && !m.flushScheduled.Load() && !m.flushScheduled.Swap(true) {
		time.AfterFunc(flushDelay, m.flush)
	}
}

// observe adds a duration to a histogram. The argument first is the index of
// the histogram's first cell.
func (m *meter) observe(first int, d time.Duration) {
	m.cells[first+metric.Bucket(d)].Add(1)
	m.add(first+len(metric.Buckets)+1, uint64(max(0, d.Microseconds())))
}

// flush sends the counts since the last flush.
func (m *meter) flush() {
	if m == nil {
		return
	}
	m.flushScheduled.Store(false)
	m.sentMu.Lock()
	defer m.sentMu.Unlock()
	var list []query.Count
	add := func(cell int, n uint64) (rest uint64) {
		if n > 0 {
			list = append(list, query.Count{Cell: uint16(cell), N: uint32(min(n, math.MaxUint32))})
		}
		return n - min(n, math.MaxUint32)
	}
	for i := metric.FromWorkers; i < len(m.cells); i++ {
		if m.cells[i].Load() == 0 {
			continue
		}
		if rest := add(i, m.cells[i].Swap(0)); rest > 0 {
			m.cells[i].Add(rest)
			m.scheduleFlush()
		}
	}
	for _, e := range m.extras() {
		if rest := add(e.cell, e.total-m.sent[e.cell]); rest > 0 {
			m.scheduleFlush()
			m.sent[e.cell] = e.total - rest
		} else {
			m.sent[e.cell] = e.total
		}
	}
	slices.SortFunc(list, func(a, b query.Count) int { return cmp.Compare(a.Cell, b.Cell) })
	m.report(list)
}

// report sends the counts in list, which must be sorted by cell. It also sends
// the numbers of requests and calls in progress.
func (m *meter) report(list []query.Count) {
	for first := true; first || len(list) > 0; first = false {
		n := min(len(list), query.MaxCounts)
		if m.send(&query.Counts{Requests: uint32(m.requests.Load()), Calls: uint32(m.calls.Load()), Cells: list[:n]}) != nil {
			return // the dispatcher has exited
		}
		list = list[n:]
	}
}

// traffic counts the bytes of the connections of all clients.
var traffic struct{ received, sent atomic.Uint64 }

// extraCounters returns the counters that other parts of this worker keep.
func (m *meter) extraCounters(c *counters) []extra {
	return []extra{
		{m.Received.Cell(), traffic.received.Load()}, {m.Sent.Cell(), traffic.sent.Load()},
		{m.Denied.Cell(table.DeniedUnauthenticated), c.unauthenticated.Load()}, {m.Denied.Cell(table.DeniedBlocked), c.paused.Load()},
		{m.Denied.Cell(table.DeniedRate), c.limited.Load() + c.audit.Limited.Load()}, {m.Denied.Cell(table.DeniedShare), c.share.Load()},
		{m.Denied.Cell(table.DeniedFull), c.overloaded.Load()},
		{m.Malformed.Cell(table.MalformedRequest), c.badRequests.Load()}, {m.Malformed.Cell(table.MalformedHandshake), c.handshakes.Load()},
		{m.Malformed.Cell(table.MalformedFrames), c.frames.Load()}, {m.Stalled.Cell(), c.stalled.Load()},
		{m.Changes.Cell(), c.audit.Changes.Load()}, {m.Unrecorded.Cell(), c.audit.Unrecorded.Load()},
	}
}

// observeRequest implements rest.Config.Observe.
func observeRequest(o rest.Observation) {
	m := processMeter.Load()
	if m == nil {
		return
	}
	route, version := "none", 0
	switch {
	case o.Endpoint != nil:
		route, version = label.Route(o.Endpoint), m.Version(o.Version.String())
	case o.Page != "":
		route = "/" + o.Page
	}
	i := m.Operation(route, o.Method)
	m.add(m.Requests.Cell(i, version, m.Status(o.Status)), 1)
	m.observe(m.Durations.Cell(i), o.Duration)
}

// observeCalls returns the function for client.Config.Observe. That function
// counts and times the worker's calls to controllers, or to accounting daemons
// if accounting is true.
func observeCalls(accounting bool) func(message.Type) func(client.Outcome) {
	return func(kind message.Type) func(client.Outcome) {
		m := processMeter.Load()
		if m == nil {
			return func(client.Outcome) {}
		}
		start := time.Now()
		m.calls.Add(1)
		m.scheduleFlush()
		return func(o client.Outcome) {
			m.calls.Add(-1)
			i := m.Call(label.RPC(accounting, kind))
			m.observe(m.CallDurations.Cell(i), time.Since(start))
			if o != client.OK {
				m.add(m.CallErrors.Cell(i, failures[o]), 1)
			}
		}
	}
}

// failures maps outcomes to their labels.
var failures = map[client.Outcome]int{
	client.Unreachable: table.Unreachable,
	client.TimedOut:    table.Timeout,
	client.Broken:      table.Broken,
	client.Refused:     table.Refused,
	client.NotCreated:  table.Other,
}

// countRequests returns a handler that calls handler and counts the requests in
// progress.
func countRequests(handler http.Handler) http.Handler {
	m := processMeter.Load()
	if m == nil {
		return handler
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.requests.Add(1)
		defer m.requests.Add(-1)
		m.scheduleFlush()
		handler.ServeHTTP(w, r)
	})
}
