// Package meter counts what the metrics of the gateway show of a worker, and
// sends the counts to the dispatcher.
package meter

import (
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"schedrestd/gateway/worker/broker"
	"schedrestd/gateway/worker/count"
	"schedrestd/handlers/feed"
	"schedrestd/handlers/rest"
	"schedrestd/internal/limit"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/metric"
	"schedrestd/metric/label"
	"schedrestd/metric/table"
	"schedrestd/rpc/client"
	"schedrestd/rpc/message"
)

// A Meter counts requests, bytes, and the worker's calls to daemons. A moment
// after a count changes, the Meter sends all new counts to the dispatcher,
// which adds them up. So the totals are still correct after a worker has
// exited. A worker's latest counts are lost only if it is killed.
type Meter struct {
	*table.Table
	send           func(ipc.Message, ...int) error
	counters       []source // see Include
	cells          []atomic.Uint64
	requests       atomic.Int64 // requests in progress
	calls          atomic.Int64
	waits          atomic.Int64
	streams        atomic.Int64
	readers        atomic.Int64
	watch          map[feed.Count]int // cells
	flushScheduled atomic.Bool
}

// A source is a counter that another part of the worker keeps.
type source struct {
	cell    int
	counter *count.Counter
}

// process is the meter of this process, or nil if the gateway has no metrics. A
// process runs at most one worker, so this can be a global variable.
var process atomic.Pointer[Meter]

// Start makes this process count for the metrics. The counts are sent with
// send.
func Start(send func(ipc.Message, ...int) error) { process.Store(newMeter(send)) }

// Process returns the meter of this process, or nil if the gateway has no
// metrics.
func Process() *Meter { return process.Load() }

// flushDelay is how long counts are collected before they are sent.
const flushDelay = time.Second

func newMeter(send func(ipc.Message, ...int) error) *Meter {
	t := table.New()
	return &Meter{
		Table: t,
		send:  send,
		cells: make([]atomic.Uint64, t.Cells),
		watch: map[feed.Count]int{
			feed.ReadChanged: t.Reads.Cell(table.ReadChanged), feed.ReadUnchanged: t.Reads.Cell(table.ReadUnchanged), feed.ReadFailed: t.Reads.Cell(table.ReadFailed),
			feed.Saved:       t.Saved.Cell(),
			feed.WaitChanged: t.Waits.Cell(table.WaitChanged), feed.WaitTimeout: t.Waits.Cell(table.WaitTimeout), feed.WaitStopped: t.Waits.Cell(table.WaitStopped),
			feed.WaitLeft: t.Waits.Cell(table.WaitLeft), feed.WaitFailed: t.Waits.Cell(table.WaitFailed),
			feed.Wakes:         t.Wakes.Cell(),
			feed.EventSnapshot: t.Events.Cell(table.EventSnapshot), feed.EventAdded: t.Events.Cell(table.EventAdded), feed.EventChanged: t.Events.Cell(table.EventChanged),
			feed.EventRemoved: t.Events.Cell(table.EventRemoved), feed.EventReset: t.Events.Cell(table.EventReset), feed.EventEnd: t.Events.Cell(table.EventEnd),
			feed.EventLate: t.Events.Cell(table.EventLate),
		},
	}
}

// add adds n to a cell.
func (m *Meter) add(cell int, n uint64) {
	m.cells[cell].Add(n)
	m.scheduleFlush()
}

// scheduleFlush schedules a call of Flush after a change.
func (m *Meter) scheduleFlush() {
	if m != nil && !m.flushScheduled.Load() && !m.flushScheduled.Swap(true) {
		time.AfterFunc(flushDelay, m.Flush)
	}
}

// observe adds a duration to a histogram. The argument first is the index of
// the histogram's first cell.
func (m *Meter) observe(first int, d time.Duration) {
	m.cells[first+metric.Bucket(d)].Add(1)
	m.add(first+len(metric.Buckets)+1, uint64(max(0, d.Microseconds())))
}

// Flush sends the counts since the last flush.
func (m *Meter) Flush() {
	if m == nil {
		return
	}
	m.flushScheduled.Store(false)
	for _, s := range m.counters {
		m.cells[s.cell].Add(s.counter.Take())
	}
	for i, c := range limit.Counted() {
		m.cells[m.LimitWaits.Cell(i)].Add(c.Waited.Swap(0))
		m.cells[m.LimitRefusals.Cell(i)].Add(c.Refused.Swap(0))
	}
	var list []query.Count
	for i := metric.FromWorkers; i < len(m.cells); i++ {
		if m.cells[i].Load() == 0 {
			continue
		}
		total := m.cells[i].Swap(0)
		n := min(total, math.MaxUint32)
		list = append(list, query.Count{Cell: uint16(i), N: uint32(n)})
		if total > n {
			m.cells[i].Add(total - n)
			m.scheduleFlush()
		}
	}
	m.report(list)
}

// report sends the counts in list, which must be sorted by cell. It also sends
// what the worker has at present.
func (m *Meter) report(list []query.Count) {
	gauges := query.Gauges{Requests: uint32(m.requests.Load()), Calls: uint32(m.calls.Load()),
		Waits: uint32(m.waits.Load()), Streams: uint32(m.streams.Load()), Readers: uint32(m.readers.Load())}
	for first := true; first || len(list) > 0; first = false {
		n := min(len(list), query.MaxCounts)
		if m.send(&query.Counts{Gauges: gauges, Cells: list[:n]}) != nil {
			return // the dispatcher has exited
		}
		list = list[n:]
	}
}

// Include makes the meter also send the counters of other parts of the worker.
// It must be called before the worker serves.
func (m *Meter) Include(c *count.Counters, audit *broker.AuditCounts) {
	m.counters = []source{
		{m.Received.Cell(), &c.Received}, {m.Sent.Cell(), &c.Sent},
		{m.Denied.Cell(table.DeniedUnauthenticated), &c.Unauthenticated}, {m.Denied.Cell(table.DeniedBlocked), &c.Paused},
		{m.Denied.Cell(table.DeniedRate), &c.Limited}, {m.Denied.Cell(table.DeniedRate), &audit.Limited},
		{m.Denied.Cell(table.DeniedShare), &c.Share}, {m.Denied.Cell(table.DeniedFull), &c.Overloaded}, {m.Denied.Cell(table.DeniedWatch), &c.WaitsRefused},
		{m.Malformed.Cell(table.MalformedRequest), &c.BadRequests}, {m.Malformed.Cell(table.MalformedHandshake), &c.Handshakes},
		{m.Malformed.Cell(table.MalformedFrames), &c.Frames}, {m.Stalled.Cell(), &c.Stalled},
		{m.Changes.Cell(), &audit.Changes}, {m.Unrecorded.Cell(), &audit.Unrecorded},
	}
	c.Changed = m.scheduleFlush
}

// ObserveRequest implements rest.Worker.Observe.
func ObserveRequest(o rest.Observation) {
	m := process.Load()
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

// CountWatch implements rest.Worker.CountWatch.
func CountWatch(what feed.Count, n int) {
	m := process.Load()
	if m == nil {
		return
	}
	switch what {
	case feed.Waits:
		m.waits.Add(int64(n))
	case feed.Streams:
		m.streams.Add(int64(n))
	case feed.Readers:
		m.readers.Add(int64(n))
	default:
		m.cells[m.watch[what]].Add(uint64(n))
	}
	m.scheduleFlush()
}

// CountReused implements client.Config.Reused.
func CountReused(kept bool) {
	if m := process.Load(); m != nil {
		reason := table.ReusedShared
		if kept {
			reason = table.ReusedKept
		}
		m.add(m.Reused.Cell(reason), 1)
	}
}

// ObserveCalls returns the function for client.Config.Observe. That function
// counts and times the worker's calls to controllers, or to accounting daemons
// if accounting is true.
func ObserveCalls(accounting bool) func(message.Type) func(client.Outcome) {
	return func(kind message.Type) func(client.Outcome) {
		m := process.Load()
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

// CountRequests returns a handler that calls handler and counts the requests in
// progress.
func CountRequests(handler http.Handler) http.Handler {
	m := process.Load()
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
