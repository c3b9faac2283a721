package pool

import (
	"fmt"
	"time"

	"schedrestd/internal/penalty"
	"schedrestd/ipc/query"
	"schedrestd/metric"
)

// totals sums up the counts of all workers, including those that have exited.
// It must be used only in the loop.
type totals struct {
	cells       []uint64 // nil: the gateway has no metrics
	startTime   time.Time
	generations uint64

	reloadRejected uint64 // 1 if the last reload was rejected
}

func newTotals(enabled bool) (t totals) {
	t.startTime = time.Now()
	if enabled {
		t.cells = make([]uint64, metric.MaxCells)
	}
	return t
}

// maxGauge limits how many requests, streams and so on a worker may report that
// it has.
const maxGauge = 1 << 20

// gauges are the families for what workers have at present.
var gauges = []struct {
	*metric.Family
	of func(query.Gauges) uint32
}{
	{metric.RequestsInFlight, func(g query.Gauges) uint32 { return g.Requests }},
	{metric.CallsInFlight, func(g query.Gauges) uint32 { return g.Calls }},
	{metric.Waits, func(g query.Gauges) uint32 { return g.Waits }},
	{metric.Streams, func(g query.Gauges) uint32 { return g.Streams }},
	{metric.Readers, func(g query.Gauges) uint32 { return g.Readers }},
}

// addCounts adds to the totals the counts that w sent in m. A message from a
// compromised worker can add at most 2^32 to each cell, so no total overflows
// before the worker exits. A worker can't change the cells that the dispatcher
// itself fills.
func (p *Pool) addCounts(w *worker, m *query.Counts) error {
	t := &p.Slots.totals
	switch {
	case t.cells == nil:
		return fmt.Errorf("sent Counts, but metrics are off")
	case !w.counts.Take(time.Now(), 1):
		return errTooOften("Counts")
	}
	for _, g := range gauges {
		if n := g.of(m.Gauges); n > maxGauge {
			return fmt.Errorf("sent Counts with %d for %s", n, g.Name)
		}
	}
	last := metric.FromWorkers - 1
	for _, c := range m.Cells {
		if int(c.Cell) <= last {
			return fmt.Errorf("sent Counts of cell %d after %d", c.Cell, last)
		}
		last = int(c.Cell)
		t.cells[last] += uint64(c.N)
	}
	w.gauges = m.Gauges
	return nil
}

// CountGeneration counts a change of the current generation.
func (s *Set) CountGeneration() { s.Slots.totals.generations++ }

// SetReloadRejected records whether the last reload was rejected.
func (s *Set) SetReloadRejected(rejected bool) {
	s.Slots.totals.reloadRejected = 0
	if rejected {
		s.Slots.totals.reloadRejected = 1
	}
}

// Samples returns the nonzero cells of all metrics.
func (s *Set) Samples() (list []query.Sample) {
	t, a, c := &s.Slots.totals, s.Slots.Stats(), &s.Slots.counts
	var running uint64
	sums := make([]uint64, len(gauges))
	s.each(func(p *Pool) {
		for _, w := range p.workers {
			running++
			for i, g := range gauges {
				sums[i] += uint64(g.of(w.gauges))
			}
		}
	})
	set := func(f *metric.Family, values ...uint64) {
		for i, n := range values {
			at := []int{i}[:len(f.Labels)] // a family has one label or none
			t.cells[f.Cell(at...)] = n
		}
	}
	set(metric.StartTime, uint64(t.startTime.Unix()))
	set(metric.Generations, t.generations)
	set(metric.ReloadRejected, t.reloadRejected)
	set(metric.Slots, uint64(a.Slots))
	set(metric.SlotsUsed, uint64(max(0, a.Held)))
	set(metric.SlotsWaiting, uint64(a.Waiting))
	set(metric.Sources, uint64(a.Sources))
	set(metric.Connections, c.accepted)
	set(metric.ConnectionsWaited, a.Waited)
	set(metric.ConnectionsRefused, c.unidentified, c.forbidden, c.blocked, c.unavailable)
	set(metric.Offences, a.Offences[penalty.Auth], a.Offences[penalty.Malformed], a.Offences[penalty.Crash])
	set(metric.Blocks, a.Blocks)
	set(metric.Debts, uint64(a.Debts))
	set(metric.Workers, running)
	set(metric.WorkersStarted, c.started)
	set(metric.WorkersExited, c.done, c.died, c.killed, c.violated)
	// Spare sockets (dial.Counters.Prepared) do not count as dials. A worker may
	// never use them, and a spare socket to another machine connects only when
	// it is used.
	set(metric.Dials, c.dial.Dialed.Load(), c.dial.Failed.Load(), c.dial.Limited.Load())
	set(metric.WatchConnections, uint64(a.Watching))
	set(metric.WatchConnectionsMax, uint64(a.WatchingMax))
	for i, g := range gauges {
		set(g.Family, sums[i])
	}
	for i, n := range t.cells {
		if n > 0 {
			list = append(list, query.Sample{Cell: uint16(i), N: n})
		}
	}
	return list
}
