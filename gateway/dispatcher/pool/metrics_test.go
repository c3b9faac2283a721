package pool

import (
	"math"
	"strings"
	"testing"
	"time"

	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/ipc/query"
	"schedrestd/metric"
)

// counting returns a pool with or without metrics, and two of its workers.
func counting(enabled bool) (s *Set, p *Pool, a, b *worker) {
	slots := newSlots(Options{Connections: 10, Metrics: enabled}, NewLoop())
	p = &Pool{Set: &Set{Slots: slots, pools: map[*Pool]struct{}{}}, workers: map[uint32]*worker{}}
	s = p.Set
	s.pools[p] = struct{}{}
	worker := func(n uint32) *worker {
		w := &worker{counts: rate.New(limit.WorkerCounts, time.Now())}
		p.workers[n] = w
		return w
	}
	return s, p, worker(1), worker(2)
}

func sampled(s *Set) map[uint16]uint64 {
	values := map[uint16]uint64{}
	for _, sample := range s.Samples() {
		values[sample.Cell] = sample.N
	}
	return values
}

// TestCounts checks that each total is the sum for all workers, including those
// that have exited. Only what workers have at present must not include workers
// that have exited.
func TestCounts(t *testing.T) {
	s, p, a, b := counting(true)
	cell := uint16(metric.FromWorkers + 7)
	for _, tt := range []struct {
		w *worker
		m *query.Counts
	}{
		{a, &query.Counts{Gauges: query.Gauges{Requests: 3, Streams: 1}, Cells: []query.Count{{Cell: cell, N: 2}, {Cell: cell + 1, N: 5}}}},
		{b, &query.Counts{Gauges: query.Gauges{Requests: 4, Waits: 4}, Cells: []query.Count{{Cell: cell, N: math.MaxUint32}}}},
		{a, &query.Counts{Gauges: query.Gauges{Requests: 2, Waits: 1, Readers: 1}}},
	} {
		if err := p.addCounts(tt.w, tt.m); err != nil {
			t.Fatal(err)
		}
	}
	delete(p.workers, 2)
	got := sampled(s)
	for at, want := range map[uint16]uint64{cell: math.MaxUint32 + 2, cell + 1: 5, uint16(metric.RequestsInFlight.Cell()): 2,
		uint16(metric.Waits.Cell()): 1, uint16(metric.Streams.Cell()): 0, uint16(metric.Readers.Cell()): 1, uint16(metric.Workers.Cell()): 1,
		uint16(metric.Slots.Cell()): 10, uint16(metric.WorkersExited.Cell(metric.ExitDied)): 0} {
		if got[at] != want {
			t.Errorf("cell %d is %d, want %d", at, got[at], want)
		}
	}
}

// TestCompromisedCounts checks that a worker is killed if it sends counts that
// no honest worker sends.
func TestCompromisedCounts(t *testing.T) {
	first := uint16(metric.FromWorkers)
	for _, tt := range []struct {
		name, want string
		off        bool
		m          query.Counts
	}{
		{"a cell of the dispatcher", "cell 3", false, query.Counts{Cells: []query.Count{{Cell: 3, N: 1}}}},
		{"the last cell of the dispatcher", "cell", false, query.Counts{Cells: []query.Count{{Cell: first - 1, N: 1}}}},
		{"a cell twice", "after", false, query.Counts{Cells: []query.Count{{Cell: first, N: 1}, {Cell: first, N: 1}}}},
		{"out of order", "after", false, query.Counts{Cells: []query.Count{{Cell: first + 1, N: 1}, {Cell: first, N: 1}}}},
		{"too many requests", "http_requests_in_flight", false, query.Counts{Gauges: query.Gauges{Requests: maxGauge + 1}}},
		{"too many readers", "watch_readers", false, query.Counts{Gauges: query.Gauges{Readers: maxGauge + 1}}},
		{"without metrics", "metrics are off", true, query.Counts{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, p, w, _ := counting(!tt.off)
			if err := p.addCounts(w, &tt.m); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	_, p, w, other := counting(true)
	for range int(limit.WorkerCounts.Burst) {
		if err := p.addCounts(w, new(query.Counts)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.addCounts(w, new(query.Counts)); err == nil || !strings.Contains(err.Error(), "too often") {
		t.Errorf("a flood of messages: %v", err)
	}
	if err := p.addCounts(other, new(query.Counts)); err != nil {
		t.Errorf("another worker: %v", err)
	}
}
