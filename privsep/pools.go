package privsep

import (
	"os"
	"sync"
	"time"

	"schedrestd/errs"
	"schedrestd/privsep/spawn"
)

// pools is every pool that runs, those on their way out too.
type pools struct {
	mu      sync.Mutex
	list    map[*pool]struct{}
	closed  bool
	running sync.WaitGroup

	// Of workers whose number and end are in the hands of those whom they are for.
	lost, routine *tally
}

func newPools() *pools {
	return &pools{list: map[*pool]struct{}{}, lost: newTally(), routine: newTally()}
}

// start starts p, which is on the list as long as anything of it runs. It reports false when
// everything comes to its end, and no pool starts any more.
func (ps *pools) start(p *pool) error {
	ps.mu.Lock()
	if ps.closed {
		ps.mu.Unlock()
		p.gen.release()
		return errs.New(errs.Unavailable, "%s", stopping)
	}
	ps.list[p] = struct{}{}
	if p.lazy {
		p.lost, p.routine = ps.lost, ps.routine
	}
	ps.running.Go(func() {
		<-p.gone
		ps.mu.Lock()
		delete(ps.list, p)
		ps.mu.Unlock()
		p.gen.release()
	})
	ps.mu.Unlock()
	return p.start()
}

// each does something with each pool.
func (ps *pools) each(do func(*pool)) {
	ps.mu.Lock()
	var list []*pool
	for p := range ps.list {
		list = append(list, p)
	}
	ps.mu.Unlock()
	for _, p := range list {
		do(p)
	}
}

// accuse has a worker killed, whichever pool it is of, for a breach of the book that somebody else has seen.
func (ps *pools) accuse(number uint32, why string) {
	ps.each(func(p *pool) { p.accuse(number, why) })
}

// finish lets all workers end what they are answering, unless a second signal comes.
func (ps *pools) finish(first os.Signal, signals <-chan os.Signal, c Config) error {
	ps.mu.Lock()
	ps.closed = true
	ps.mu.Unlock()
	ps.each((*pool).drain)
	done := make(chan struct{})
	go func() { ps.running.Wait(); close(done) }()
	end := func(why string) { ps.each(func(p *pool) { p.end(why) }) }
	// A captured worker need not keep its own limit.
	late := time.AfterFunc(c.Setup.Limits.Drain+spawn.LastWords, func() { end("it did not end in time") })
	defer late.Stop()
	// A terminal and some supervisors send the same signal twice at once: to the process
	// and to its group. That is one wish.
	same := time.Now().Add(sameSignal)
	for {
		select {
		case <-done:
			c.Log.Info("stopped")
			return nil
		case s := <-signals:
			if s == hangUp || s == first && time.Now().Before(same) {
				continue
			}
			end("a second signal came")
			<-done
			return errs.New(errs.Unavailable, "stopped by a second signal (%s) before all was answered", s)
		}
	}
}

// sameSignal is how close together two of a kind count as one.
const sameSignal = 500 * time.Millisecond
