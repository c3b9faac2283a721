package pool

import (
	"time"

	"schedrestd/errs"
)

// NewSet returns a Set without pools, and runs its loop. Starter must be set
// before the first pool starts.
func NewSet(o Options) *Set {
	l := NewLoop()
	s := &Set{Loop: l, Slots: newSlots(o, l), pools: map[*Pool]struct{}{}, Done: make(chan struct{}),
		failures: newLimitedCount(), routine: newLimitedCount()}
	s.Slots.checkSilent = func() { s.each((*Pool).excuseSilent) }
	go l.Run()
	return s
}

// Start starts p. If p is lazy, started gets nil at once. Otherwise it gets nil
// when the first worker of each place is ready, or an error after p has ended
// because a first worker did not become ready. After Close, no pool starts and
// started gets an error at once.
func (s *Set) Start(p *Pool, started func(error)) {
	if s.closed {
		p.draining = true
		p.gen.Release()
		started(errs.New(errs.Unavailable, "%s", Stopping))
		return
	}
	s.pools[p] = struct{}{}
	if p.Lazy {
		p.failures, p.routine = s.failures, s.routine
	}
	p.start(started)
}

// each calls do with each pool.
func (s *Set) each(do func(*Pool)) {
	for p := range s.pools {
		do(p)
	}
}

// ServeWaiting gives the waiting connections of all pools to workers.
func (s *Set) ServeWaiting() { s.each((*Pool).serveWaiting) }

// Watch calls checkLiveness of each pool, now and then periodically.
func (s *Set) Watch(every time.Duration) {
	s.each((*Pool).checkLiveness)
	s.After(every, func() { s.Watch(every) })
}

// ReportViolation kills a worker of any pool, because a service has detected
// that the worker broke the protocol. Any goroutine may call it.
func (s *Set) ReportViolation(number uint32, reason string) {
	s.Do(func() { s.each(func(p *Pool) { p.reportViolation(number, reason) }) })
}

// LogCounters logs the counters of connections and of workers, and makes the
// workers log their own counters.
func (s *Set) LogCounters() {
	s.Slots.logCounters()
	s.each((*Pool).logCounters)
}

// Close drains all pools.
func (s *Set) Close() {
	s.each((*Pool).Drain)
	s.closed = true
	s.closeIfDone()
}

// End kills all workers.
func (s *Set) End(reason string) { s.each(func(p *Pool) { p.End(reason) }) }
