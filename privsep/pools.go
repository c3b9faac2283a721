package privsep

import (
	"os"
	"time"

	"schedrestd/errs"
	"schedrestd/privsep/relay"
	"schedrestd/privsep/spawn"
)

// pools is every pool that runs, those that end too.
type pools struct {
	list   map[*pool]struct{}
	closed bool
	over   chan struct{} // closed when closed is set and no pool runs
	quotas relay.Quotas  // of what workers log

	// Of workers that users can have started and ended.
	lost, routine *limitedCount
}

func newPools() *pools {
	return &pools{list: map[*pool]struct{}{}, over: make(chan struct{}), lost: newLimitedCount(), routine: newLimitedCount()}
}

// start starts p (see there), which is on the list as long as anything of it runs. When the gateway
// stops no pool starts any more.
func (ps *pools) start(p *pool, started func(error)) {
	if ps.closed {
		p.draining = true
		p.gen.release()
		started(errs.New(errs.Unavailable, "%s", stopping))
		return
	}
	ps.list[p] = struct{}{}
	if p.lazy {
		p.lost, p.routine = ps.lost, ps.routine
	}
	p.start(started)
}

// remove takes p off the list, which has ended.
func (ps *pools) remove(p *pool) {
	delete(ps.list, p)
	ps.checkOver()
}

func (ps *pools) checkOver() {
	if ps.closed && len(ps.list) == 0 {
		close(ps.over)
	}
}

// each does something with each pool.
func (ps *pools) each(do func(*pool)) {
	for p := range ps.list {
		do(p)
	}
}

// close drains all pools.
func (ps *pools) close() {
	ps.each((*pool).drain)
	ps.closed = true
	ps.checkOver()
}

// end kills all workers.
func (ps *pools) end(why string) { ps.each(func(p *pool) { p.end(why) }) }

// finish lets all workers end what they are answering, unless a second signal comes.
func (m means) finish(first os.Signal, signals <-chan os.Signal, c Config) error {
	ps := m.pools
	m.do(ps.close)
	// A captured worker need not keep its own limit.
	late := m.after(c.Setup.Limits.Drain+spawn.LastWords, func() { ps.end("it did not end in time") })
	defer late.Stop()
	// A terminal and some supervisors send the same signal twice at once: to the process
	// and to its group. That is one request.
	same := time.Now().Add(sameSignal)
	for {
		select {
		case <-ps.over:
			c.Log.Info("stopped")
			return nil
		case s := <-signals:
			if s == hangUp || s == first && time.Now().Before(same) {
				continue
			}
			m.do(func() { ps.end("a second signal came") })
			<-ps.over
			return errs.New(errs.Unavailable, "stopped by a second signal (%s) before all was answered", s)
		}
	}
}

// sameSignal is how close together two of a kind count as one.
const sameSignal = 500 * time.Millisecond
