package pool

import (
	"time"

	"schedrestd/gateway/dispatcher/dial"
	"schedrestd/gateway/dispatcher/relay"
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
)

// workerSpec describes the worker to start.
type workerSpec struct {
	client   uint64 // number of the connection whose user the worker runs as; 0: the configured identity
	threads  int
	requests int
	quota    *relay.Quota // limits the lines that the worker may log
}

// spawnWorker starts a worker. It blocks.
func (s *Set) spawnWorker(g *Generation, spec workerSpec) (*worker, error) {
	c := g.Config
	w, err := s.Starter.Start(ipc.StartProcess{Role: ipc.Worker, Generation: g.ID, Client: spec.client,
		Threads: uint32(spec.threads), Requests: uint32(spec.requests)}, spec.quota)
	if err != nil {
		return nil, err
	}
	setup := c.Setup
	dial.Spread(&setup, w.Number)
	options := dial.Options{Setup: &setup, Hosts: c.Hosts, Ports: dial.Ports(w.Number), OwnUserns: w.OwnUserns,
		Burst: c.DialBurst, Rate: c.DialRate, Counts: &s.Slots.counts.dial}
	connections, watching := float64(c.Connections), float64(setup.Watching)
	return &worker{Process: w, outputs: map[uint64]*output{}, credentials: map[uint64]*credential{}, requests: spec.requests, dialer: dial.New(options, w.Channel),
		held: map[uint64]*Connection{}, share: 1 / float64(c.Workers),
		reports:  rate.New(limit.WorkerStages.Of(1000+4*connections+2*watching, 40*connections+2*watching), time.Now()),
		offences: rate.New(limit.WorkerOffences, time.Now()),
		counts:   rate.New(limit.WorkerCounts, time.Now())}, nil
}
