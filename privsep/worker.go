package privsep

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/rate"
)

// worker is one worker process as the parent sees it. The fields below process are
// guarded by mu of its pool.
type worker struct {
	*process

	requests int // that it may answer at one time
	errands  *errands
	audit    *auditor
	ready    bool
	breach   error                  // how it broke the book elsewhere, and was killed for it
	held     map[uint64]*connection // what it was given and has not said Done of
	handed   uint64                 // connections given to it
	share    float64                // … of the last ones that its pool gave, as a part of all
	finished uint64                 // … that it finished
	asked    uint64                 // number of the last Ping
	waiting  time.Time              // since when that one is unanswered; zero when none is
	reports  *rate.Bucket           // of what it may say about how far its connections are
	offences *rate.Bucket           // … about what their clients did
}

// spawn starts the worker of the i-th keep and gives it its Setup and the posture to expect.
func (p *pool) spawn(i int) (*worker, error) {
	born := birth{role: ipc.Worker, program: p.spawner.program, argv: p.spawner.argv, threads: p.threads(i), who: p.who}
	process, err := p.spawner.launch(born, p.log, p.slots.quotas.of(p.who.UID, i, p.config))
	if err != nil {
		return nil, err
	}
	w := &worker{process: process, requests: p.requests(i), held: map[uint64]*connection{}, share: 1 / float64(p.config.Workers)}
	// It says how far one has come when that has lasted (worker/watch.go), and when it was asked to end it.
	w.reports = rate.New(1000+4*float64(p.config.Connections), 40*float64(p.config.Connections), time.Now())
	w.offences = rate.New(offenceBurst, offenceRate, time.Now())
	p.slots.counts.born.add(1)
	setup := p.config.Setup
	setup.Requests = uint32(w.requests)
	setup.Controllers = spread(setup.Controllers, setup.MorePorts, w.number)
	setup.Front = spread(setup.Front, setup.MorePorts, w.number)
	p.names.introduce(&setup, p.who.UID, p.log)
	w.errands = newErrands(&setup, w.channel, p.names, p.outlet)
	w.errands.servers = p.spawner.servers
	w.errands.counts = p.slots.counts
	w.errands.dials = rate.New(float64(p.config.DialBurst), float64(p.config.DialRate), time.Now())
	w.errands.ports = portsOf(w.number, p.outlet)
	w.audit = newAuditor(p.audit, process, p.who.UID, w.requests, func(id uint64) (*ipc.Connection, error) { return p.holds(w, id) })
	setup.Tasks = uint32(p.spawner.tasks(born.threads))
	expect := p.spawner.expect(p.who, p.config.files(), uint64(setup.Tasks))
	for _, m := range []ipc.Message{&setup, &expect} {
		if err := w.channel.TrySend(m); err != nil && !errors.Is(err, unix.EPIPE) { // who is dead already is heard to be
			return w, errs.Wrap(err, errs.Internal, "tell a worker what it needs")
		}
	}
	return w, nil
}
