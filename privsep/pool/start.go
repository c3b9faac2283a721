package pool

import (
	"time"

	"schedrestd/ipc"
	"schedrestd/privsep/dial"
	"schedrestd/privsep/relay"
	"schedrestd/privsep/spawn"
	"schedrestd/rate"
	"schedrestd/security"
)

// post describes the worker to start.
type post struct {
	who      security.Identity
	threads  int
	requests int
	quota    *relay.Quota // of what it logs
}

// spawnWorker starts a worker. It blocks.
func (s *Set) spawnWorker(c Config, at post) (*worker, error) {
	setup, ports := c.Setup, uint32(0)
	born := spawn.Birth{Role: ipc.Worker, Program: s.Spawner.Worker, Argv: s.Spawner.Argv, Threads: at.threads, Who: at.who, Files: c.Files}
	process, err := s.Spawner.Start(born, at.quota, func(p *spawn.Process, tasks uint64) ipc.Message {
		setup.Requests, setup.Tasks = uint32(at.requests), uint32(tasks)
		if !setup.Inetd { // where it has no others beside it
			dial.Spread(&setup, p.Number)
			ports = s.Outlet.Ports(p.Number)
		}
		return &setup
	})
	if err != nil {
		return nil, err
	}
	options := dial.Options{Setup: &setup, Outlet: s.Outlet, Ports: ports, Foreign: s.Spawner.InUserNamespaces(),
		Burst: c.DialBurst, Rate: c.DialRate, Counts: &s.Slots.counts.dial}
	return &worker{Process: process, requests: at.requests, dialer: dial.New(options, process.Channel),
		held: map[uint64]*Connection{}, share: 1 / float64(c.Workers),
		// A worker reports the state of a connection when it has lasted
		// (worker/tracker.go), and when it was asked to close the connection.
		reports:  rate.New(1000+4*float64(c.Connections), 40*float64(c.Connections), time.Now()),
		offences: rate.New(offenceBurst, offenceRate, time.Now())}, nil
}
