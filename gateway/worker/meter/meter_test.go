package meter

import (
	"context"
	"maps"
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	"schedrestd/api"
	"schedrestd/gateway/worker/broker"
	"schedrestd/gateway/worker/count"
	"schedrestd/handlers"
	"schedrestd/handlers/feed"
	"schedrestd/handlers/rest"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/metric"
	"schedrestd/metric/table"
	"schedrestd/rpc/client"
	"schedrestd/rpc/message"
)

// collectingMeter returns a meter, the sums of the counts that the meter has
// sent, and the number of messages that it has sent.
func collectingMeter(t *testing.T) (m *Meter, sums map[int]uint64, messages *int) {
	sums, messages = map[int]uint64{}, new(int)
	m = newMeter(func(msg ipc.Message, _ ...int) error {
		if n := len(msg.(*query.Counts).Cells); n > query.MaxCounts {
			t.Errorf("%d cells in a message", n)
		}
		*messages++
		last := metric.FromWorkers - 1
		for _, c := range msg.(*query.Counts).Cells {
			if int(c.Cell) <= last {
				t.Errorf("cell %d after %d", c.Cell, last)
			}
			last = int(c.Cell)
			sums[last] += uint64(c.N)
		}
		return nil
	})
	m.flushScheduled.Store(true) // the test calls flush itself
	return m, sums, messages
}

// TestMeter checks that a request is counted once, in the cells for its labels,
// and that these counts are sent once.
func TestMeter(t *testing.T) {
	m, sums, _ := collectingMeter(t)
	process.Store(m)
	defer process.Store(nil)
	ObserveRequest(rest.Observation{Endpoint: api.GetJob.Endpoint, Version: api.V43, Method: http.MethodGet, Status: 200, Duration: 3 * time.Millisecond})
	ObserveRequest(rest.Observation{Method: "PROPFIND", Status: 418})
	ObserveRequest(rest.Observation{Page: "readyz", Method: http.MethodHead, Status: 503, Duration: time.Hour})
	ObserveCalls(true)(message.AccountingGetJobs)(client.TimedOut)
	c, audit := new(count.Counters), new(broker.AuditCounts)
	c.Limited.Add(3)
	audit.Limited.Add(1)
	m.Include(c, audit)
	m.Flush()
	m.Flush()
	job, ready := m.Operation("/sched/job/{job_id}", http.MethodGet), m.Operation("/readyz", http.MethodHead)
	call := m.Call("accounting", "DBD_GET_JOBS_COND")
	for cell, want := range map[int]uint64{
		m.Requests.Cell(job, m.Version("v0.0.43"), m.Status(200)):        1,
		m.Requests.Cell(m.Operation("none", "other"), 0, m.Status(1000)): 1,
		m.Requests.Cell(ready, 0, m.Status(503)):                         1,
		m.Durations.Cell(job) + 2:                                        1, // 5 ms
		m.Durations.Cell(job) + len(metric.Buckets) + 1:                  3000,
		m.Durations.Cell(ready) + len(metric.Buckets):                    1, // longer than all buckets
		m.CallErrors.Cell(call, table.Timeout):                           1,
		m.Denied.Cell(table.DeniedRate):                                  4,
		m.Denied.Cell(table.DeniedShare):                                 0,
	} {
		if sums[cell] != want {
			t.Errorf("cell %d is %d, want %d", cell, sums[cell], want)
		}
	}
}

// TestWatchCounts checks that everything that is counted about requests that wait
// has a gauge or a cell of its own, and that gauges go down again.
func TestWatchCounts(t *testing.T) {
	m, sums, _ := collectingMeter(t)
	var gauges query.Gauges
	send := m.send
	m.send = func(msg ipc.Message, fds ...int) error {
		gauges = msg.(*query.Counts).Gauges
		return send(msg, fds...)
	}
	flush := func() {
		m.Flush()
		m.flushScheduled.Store(true)
	}
	process.Store(m)
	defer process.Store(nil)
	for what := range feed.EventLate + 1 {
		clear(sums)
		CountWatch(what, 3)
		flush()
		some := gauges
		if what <= feed.Readers {
			CountWatch(what, -3)
			flush()
		}
		counted := 0
		for cell, n := range sums {
			if n == 3 && cell >= m.Reused.Cell(0) {
				counted++
			}
		}
		for i, n := range []uint32{some.Waits, some.Streams, some.Readers} {
			if n == 3 && feed.Count(i) == what {
				counted++
			}
		}
		if counted != 1 || gauges != (query.Gauges{}) {
			t.Errorf("count %d: cells %v, gauges %v and then %v", what, sums, some, gauges)
		}
	}
	want := map[int]uint64{m.Reused.Cell(table.ReusedShared): 1, m.Reused.Cell(table.ReusedKept): 2}
	clear(sums)
	CountReused(false)
	CountReused(true)
	CountReused(true)
	flush()
	if !maps.Equal(sums, want) {
		t.Errorf("reused: cells %v, want %v", sums, want)
	}
}

// TestMeterSplits checks that counts are sent in parts if there are too many
// for one message, or if one of them does not fit in 32 bits.
func TestMeterSplits(t *testing.T) {
	m, sums, messages := collectingMeter(t)
	var all uint64
	for cell := metric.FromWorkers; cell < m.Cells; cell += 2 {
		m.add(cell, 3)
		all += 3
	}
	m.add(metric.FromWorkers, math.MaxUint32)
	all += math.MaxUint32
	m.Flush()
	m.Flush()
	var got uint64
	for _, n := range sums {
		got += n
	}
	if got != all || *messages < 3 {
		t.Errorf("%d of %d were sent in %d messages", got, all, *messages)
	}
}

// TestLabels checks that each page has a label of its own. Package metric/label
// checks the endpoints.
func TestLabels(t *testing.T) {
	t.Parallel()
	all := table.New()
	none := all.Operation("nowhere", http.MethodGet)
	for _, page := range handlers.Pages() {
		if all.Operation("/"+page, http.MethodGet) == none {
			t.Errorf("the page %s has no label", page)
		}
	}
}

// TestLimits checks that callers that wait for a place of a limit, and those that
// get none, are counted in the cells of that limit.
func TestLimits(t *testing.T) {
	m, sums, _ := collectingMeter(t)
	m.Flush() // what other tests have counted
	clear(sums)
	row := limit.LongRequests.Of(1)
	places := semaphore.New[string](row)
	if _, err := places.Acquire(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := places.Acquire(ctx, "ben"); err == nil {
		t.Fatal("there are two places")
	}
	m.Flush()
	i := slices.Index(limit.Counted(), row.Counts)
	if want := map[int]uint64{m.LimitWaits.Cell(i): 1, m.LimitRefusals.Cell(i): 1}; !maps.Equal(sums, want) {
		t.Errorf("the cells are %v, want %v", sums, want)
	}
}
