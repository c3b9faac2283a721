package pool

import (
	"fmt"
	"time"

	"schedrestd/ipc/query"
	"schedrestd/metric"
	"schedrestd/penalty"
)

// totals holds the sums of the counts of all workers, including those that have
// exited. It belongs to the loop.
type totals struct {
	cells       []uint64 // nil: the gateway has no metrics
	begun       time.Time
	generations uint64
}

func newTotals(on bool) (t totals) {
	t.begun = time.Now()
	if on {
		t.cells = make([]uint64, metric.MostCells)
	}
	return t
}

// Limits on the reports of a worker: messages at once, messages per second, and
// requests in progress. An honest worker sends its counts once a second, in a
// few messages.
const (
	countBurst = 100
	countRate  = 10
	mostGauge  = 1 << 20
)

// count adds the counts in a message of w to the totals. Each message of a
// compromised worker can add at most 2^32 to each cell, so no total overflows
// before the worker exits. A worker can't change the cells that the dispatcher
// fills.
func (p *Pool) count(w *worker, m *query.Counts) error {
	t := &p.Slots.totals
	switch {
	case t.cells == nil:
		return fmt.Errorf("sent Counts, but metrics are off")
	case !w.counts.Take(time.Now(), 1):
		return errTooOften("Counts")
	case m.Requests > mostGauge || m.Calls > mostGauge:
		return fmt.Errorf("sent Counts of %d requests and %d calls in progress", m.Requests, m.Calls)
	}
	last := metric.FromWorkers - 1
	for _, c := range m.Cells {
		if int(c.Cell) <= last {
			return fmt.Errorf("sent Counts of cell %d after %d", c.Cell, last)
		}
		last = int(c.Cell)
		t.cells[last] += uint64(c.N)
	}
	w.inFlight, w.calls = uint64(m.Requests), uint64(m.Calls)
	return nil
}

// InForce counts a generation that has become the current one.
func (s *Set) InForce() { s.Slots.totals.generations++ }

// Samples returns the cells of all metrics that are not 0.
func (s *Set) Samples() (list []query.Sample) {
	t, a, c := &s.Slots.totals, s.Slots.Stats(), &s.Slots.counts
	var running, requests, calls uint64
	s.each(func(p *Pool) {
		for _, w := range p.workers {
			running, requests, calls = running+1, requests+w.inFlight, calls+w.calls
		}
	})
	put := func(f *metric.Family, values ...uint64) {
		for i, n := range values {
			at := []int{i}[:len(f.Labels)] // a family has one label or none
			t.cells[f.Cell(at...)] = n
		}
	}
	put(metric.Start, uint64(t.begun.Unix()))
	put(metric.Generations, t.generations)
	put(metric.Slots, uint64(a.Slots))
	put(metric.SlotsUsed, uint64(max(0, a.Held)))
	put(metric.SlotsWaiting, uint64(a.Waiting))
	put(metric.Sources, uint64(a.Sources))
	put(metric.Connections, c.accepted)
	put(metric.Waited, a.Parked)
	put(metric.Refused, c.nameless, c.forbidden, c.paused, c.unserved)
	put(metric.Offences, a.Offences[penalty.Auth], a.Offences[penalty.Malformed], a.Offences[penalty.Crash])
	put(metric.Blocks, a.Blocked)
	put(metric.Debts, uint64(a.Debts))
	put(metric.Workers, running)
	put(metric.WorkersStarted, c.started)
	put(metric.WorkersExited, c.done, c.died, c.killed, c.violated)
	put(metric.Dials, c.dial.Dialled.Load(), c.dial.Undialled.Load(), c.dial.Limited.Load())
	put(metric.RequestsInFlight, requests)
	put(metric.CallsInFlight, calls)
	for i, n := range t.cells {
		if n > 0 {
			list = append(list, query.Sample{Cell: uint16(i), N: n})
		}
	}
	return list
}
