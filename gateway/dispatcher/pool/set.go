package pool

import (
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
)

// NewSet returns a Set without pools, and starts its loop. The field Starter
// must be set before the first pool starts.
func NewSet(o Options) *Set {
	l := NewLoop()
	s := &Set{Loop: l, Slots: newSlots(o, l), pools: map[*Pool]struct{}{}, Done: make(chan struct{}), outputs: semaphore.New[uint32](limit.OutputProcesses), credentials: semaphore.New[uint32](limit.CredentialProcesses)}
	s.Slots.checkSilent = func() { s.each((*Pool).excuseUnresponsive) }
	go l.Run()
	return s
}

// Start starts p, and calls started(nil) when the first worker in every place
// of the pool is ready. If one of these workers does not become ready, p ends,
// and then calls started with an error. For a lazy pool, Start calls
// started(nil) at once. After Close, Start does not start p, and calls started
// with an error.
func (s *Set) Start(p *Pool, started func(error)) {
	if s.closed {
		p.draining = true
		p.gen.Release()
		started(errs.New(errs.Unavailable, "%s", Stopping))
		return
	}
	s.pools[p] = struct{}{}
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

// Watch calls checkLiveness for each pool immediately, and repeats this at the
// given interval.
func (s *Set) Watch(every time.Duration) {
	s.each((*Pool).checkLiveness)
	s.After(every, func() { s.Watch(every) })
}

// ReportViolation kills the worker with this number, whichever pool the worker
// belongs to. Any goroutine may call it when a service has detected that the
// worker broke the protocol.
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
	s.each((*Pool).drain)
	s.closed = true
	s.closeIfDone()
}

func (s *Set) Kill(reason string) { s.each(func(p *Pool) { p.Kill(reason) }) }
