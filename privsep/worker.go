package privsep

import (
	"time"

	"schedrestd/ipc"
	"schedrestd/privsep/dial"
	"schedrestd/privsep/spawn"
	"schedrestd/rate"
	"schedrestd/security"
)

// worker is one worker process as the parent sees it. The fields below dialer are
// guarded by mu of its pool.
type worker struct {
	*spawn.Process
	requests int // that it may answer at one time
	dialer   *dial.Dialer

	ready    bool
	breach   error                  // how it broke the book elsewhere, and was killed for it
	held     map[uint64]*connection // what it was given and has not said Done of
	handed   uint64                 // connections given to it
	share    float64                // … of the last ones that its pool gave, as a part of all
	finished uint64                 // … that it finished
	silence  silence
	reports  *rate.Bucket // of what it may say about how far its connections are
	offences *rate.Bucket // … about what their clients did
}

// post is what a worker is hired for.
type post struct {
	who      security.Identity
	place    int // in its pool
	threads  int
	requests int
}

// hire starts a worker.
func (m means) hire(c Config, at post) (*worker, error) {
	setup, ports := c.Setup, uint32(0)
	born := spawn.Birth{Role: ipc.Worker, Program: m.spawner.Worker, Argv: m.spawner.Argv, Threads: at.threads, Who: at.who, Files: c.files()}
	process, err := m.spawner.Start(born, m.slots.quotas.Of(at.who.UID, at.place, float64(c.LogBurst), float64(c.LogRate)), func(p *spawn.Process, tasks uint64) ipc.Message {
		setup.Requests, setup.Tasks = uint32(at.requests), uint32(tasks)
		if !setup.Inetd { // where it has no others beside it
			dial.Spread(&setup, p.Number)
			ports = m.outlet.Ports(p.Number)
		}
		return &setup
	})
	if err != nil {
		return nil, err
	}
	m.slots.counts.born.add(1)
	options := dial.Options{Setup: &setup, Outlet: m.outlet, Ports: ports, Foreign: m.spawner.InUserNamespaces(),
		Burst: c.DialBurst, Rate: c.DialRate, Counts: &m.slots.counts.dial}
	w := &worker{Process: process, requests: at.requests, dialer: dial.New(options, process.Channel),
		held: map[uint64]*connection{}, share: 1 / float64(c.Workers),
		// It says how far one has come when that has lasted (worker/tracker.go), and when it was asked to end it.
		reports:  rate.New(1000+4*float64(c.Connections), 40*float64(c.Connections), time.Now()),
		offences: rate.New(offenceBurst, offenceRate, time.Now())}
	return w, nil
}

// card is what services are told of the worker.
func (w *worker) card() *ipc.Client {
	return &ipc.Client{Number: w.Number, PID: uint32(w.PID), UID: w.Who.UID, Requests: uint32(w.requests)}
}

// hear takes what any worker may say that serves: it asks for a socket. done is false when the message is another one.
func (w *worker) hear(m ipc.Message) (done bool, err error) { return w.dialer.Handle(m) }
