package query

import "schedrestd/ipc"

// The maximum number of cells (see package metric) in one Counts message and in
// one Samples message.
const (
	MaxCounts  = 2700
	MaxSamples = 1600
)

// Counts reports what a worker has counted since its previous Counts message. A
// cell is the number that package metric assigns to a value. The sizes of the
// fields limit how much a compromised worker can add to a value.
type Counts struct {
	Gauges
	Cells []Count
}

// Gauges is what a worker has at present.
type Gauges struct {
	Requests uint32 // requests in progress
	Calls    uint32 // calls to daemons in progress
	Waits    uint32 // requests that wait for a change
	Streams  uint32 // streams of events
	Readers  uint32 // lists that the worker reads again and again for them
}

// Count is an addition to one cell.
type Count struct {
	Cell uint16
	N    uint32
}

func (c *Counts) Walk(w *ipc.Walker) {
	w.Fields(&c.Requests, &c.Calls, &c.Waits, &c.Streams, &c.Readers)
	ipc.List(w, &c.Cells, MaxCounts, 6, func(c *Count) { w.Fields(&c.Cell, &c.N) })
}

// Scrape asks for all samples. The exporter must not send another Scrape before
// it has received all of them.
type Scrape struct{}

func (*Scrape) Walk(*ipc.Walker) {}

// Samples carries values of metrics, each with its cell. It omits values of 0.
type Samples struct {
	Last  bool
	Cells []Sample
}

// Sample is the value of one cell.
type Sample struct {
	Cell uint16
	N    uint64
}

func (s *Samples) Walk(w *ipc.Walker) {
	w.Fields(&s.Last)
	ipc.List(w, &s.Cells, MaxSamples, 10, func(s *Sample) { w.Fields(&s.Cell, &s.N) })
}
