package pool

import (
	"time"

	"schedrestd/errs"
)

// NewSet returns a Set without pools, and runs its loop. Spawner and Outlet are set before the first
// pool starts.
func NewSet(o Options) *Set {
	l := NewLoop()
	s := &Set{Loop: l, Slots: newSlots(o, l), list: map[*Pool]struct{}{}, Over: make(chan struct{}), lost: newLimitedCount(), routine: newLimitedCount()}
	s.Slots.silent = func() { s.each((*Pool).excuseSilent) }
	go l.Run()
	return s
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
