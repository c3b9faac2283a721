package pool

import (
	"log/slog"
	"time"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/dial"
	"schedrestd/privsep/relay"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
)

// Set is every pool that runs, those that end too, with what they share.
type Set struct {
	*Loop
	Slots   *Slots
	Spawner *spawn.Spawner
	Outlet  *dial.Outlet
	Over    chan struct{} // closed when no pool runs, after Close

	list   map[*Pool]struct{}
	closed bool
	quotas relay.Quotas // of what workers log

	// Of workers that users can have started and ended.
	lost, routine *limitedCount
}

// NewSet returns a Set without pools, and runs its loop. Spawner and Outlet are set before the first
// pool starts.
func NewSet(o Options) *Set {
	l := NewLoop()
	s := &Set{Loop: l, Slots: newSlots(o, l), list: map[*Pool]struct{}{}, Over: make(chan struct{}), lost: newLimitedCount(), routine: newLimitedCount()}
	s.Slots.silent = func() { s.each((*Pool).excuseSilent) }
	go l.Run()
	return s
}

// Generation is what the workers of one generation are started with. It belongs to the loop.
type Generation struct {
	Config
	Greet     func(worker *ipc.Client, to *ipc.Channel) error // gives a worker that is ready what it needs for connections; it may block
	Audit     Auditor
	End       func() // called when nothing uses it any more
	Replacing bool   // a service has exited, and the next generation is about to be there
	users     int    // the pools, and whoever made it
}

// Config is what the workers of a generation are started with, and how long each of their steps may take.
type Config struct {
	Setup       ipc.Setup
	Files       uint64 // limit of open descriptors
	Workers     int    // of a pool
	Connections int
	Threads     int           // of all workers of a pool
	Wear        uint64        // connections after which Pool.Worn is called
	StartLimit  time.Duration // for a worker to say Ready
	HandLimit   time.Duration // how long a connection waits while no worker can take it
	Silence     time.Duration // a worker that answers no Ping for so long is killed
	Farewell    time.Duration // a retired worker that has connections is told to finish after it
	LogBurst    int           // lines that a worker may log at once
	LogRate     int           // … and per second
	DialBurst   int           // connections to daemons that a worker may ask for at once
	DialRate    int           // … and per second
	Log         *slog.Logger
}

// Auditor is told which worker has which connection. It doesn't block.
type Auditor interface {
	Given(worker uint32, c *ipc.Connection)
	Gone(id uint64)
	Exited(worker uint32, status string)
}

// NewGeneration returns g with one user, which calls Release.
func NewGeneration(g Generation) *Generation {
	g.users = 1
	return &g
}

// Release ends g when it was the last that used it. Services end when no worker can ask them anything.
func (g *Generation) Release() {
	if g.users--; g.users == 0 && g.End != nil {
		g.End()
	}
}

// NewPool makes a pool of g, which does not end before it.
func (s *Set) NewPool(g *Generation, who security.Identity) *Pool {
	g.users++
	return &Pool{Set: s, Config: g.Config, gen: g, who: who, used: time.Now(), workers: map[uint32]*worker{}}
}

// Start starts p, which is on the list as long as anything of it runs. started is called when the first worker
// of each place is ready, or p has ended because one was not. When the gateway stops no pool starts any more.
func (s *Set) Start(p *Pool, started func(error)) {
	if s.closed {
		p.draining = true
		p.gen.Release()
		started(errs.New(errs.Unavailable, "%s", Stopping))
		return
	}
	s.list[p] = struct{}{}
	if p.Lazy {
		p.lost, p.routine = s.lost, s.routine
	}
	p.start(started)
}

// remove takes p off the list, which has ended.
func (s *Set) remove(p *Pool) {
	delete(s.list, p)
	s.checkOver()
}

func (s *Set) checkOver() {
	if s.closed && len(s.list) == 0 {
		close(s.Over)
	}
}

// each does something with each pool.
func (s *Set) each(do func(*Pool)) {
	for p := range s.list {
		do(p)
	}
}

// ServeWaiting gives out what waits in all pools.
func (s *Set) ServeWaiting() { s.each((*Pool).dequeue) }

// Watch asks each worker now and then whether it still reads its channel.
func (s *Set) Watch(every time.Duration) {
	s.each((*Pool).checkLiveness)
	s.After(every, func() { s.Watch(every) })
}

// ReportViolation kills a worker, whichever pool it is of, for a breach of the protocol that a service has seen.
// Any goroutine may call it.
func (s *Set) ReportViolation(number uint32, why string) {
	s.Do(func() { s.each(func(p *Pool) { p.reportViolation(number, why) }) })
}

// LogCounters logs the counters of connections and of the processes that served them, and has workers log theirs: they
// count the requests, which they read.
func (s *Set) LogCounters() {
	s.Slots.logCounters()
	s.each((*Pool).logCounters)
}

// Close drains all pools.
func (s *Set) Close() {
	s.each((*Pool).Drain)
	s.closed = true
	s.checkOver()
}

// End kills all workers.
func (s *Set) End(why string) { s.each(func(p *Pool) { p.End(why) }) }
