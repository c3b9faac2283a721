package privsep

import (
	"errors"
	"log/slog"
	"time"

	"schedrestd/privsep/admission"
	"schedrestd/security"
)

// pool is the workers of one identity: two by default, so that one may die. It has as many places,
// and starts the next worker of each when that ends.
type pool struct {
	means
	gen     *generation
	config  Config
	who     security.Identity // every worker's; what one has seen, another may see
	log     *slog.Logger
	lazy    bool          // a worker starts when a connection waits for it; when it can't, all that wait are told so
	once    bool          // there is one connection, and the pool ends with it
	lost    *limitedCount // of workers that ended badly or did not start, over many pools; nil: each is logged
	routine *limitedCount // … of what happens to each worker
	worn    func()        // called when it has served Config.Wear connections; may be nil
	rested  func()        // called when it may have come to rest; may be nil
	started func(error)   // called when the first worker of each place is ready, or the pool has ended because one was not
	ended   func()        // called when it has ended; may be nil

	workers  map[uint32]*worker
	vacant   []*place  // that wait for demand
	unproved int       // places whose first worker is neither ready nor gone
	failed   error     // why first workers were not ready
	lives    int       // of workers that were begun and have not ended
	waiting  queue     // until a worker takes them
	handed   uint64    // connections given to workers
	used     time.Time // when a connection last came or ended
	told     time.Time // when workers were told to end
	barren   bool      // a worker could not be started, and none is tried for a moment
	retired  bool      // no more connections come; those that are there end by themselves
	draining bool      // … or are ended when they are answered
	over     bool      // nothing of it runs any more
}

// place is where in its pool a worker is.
type place struct {
	number   int
	failures int  // workers in a row that did no work
	proved   bool // its first one was ready, or is gone
}

// newPool makes a pool of g, which does not end before it.
func newPool(m means, g *generation, who security.Identity) *pool {
	g.use()
	return &pool{means: m, gen: g, config: g.config, who: who, log: g.config.Log, used: time.Now(), workers: map[uint32]*worker{}}
}

// start starts the first workers. started is called when each has proved its attributes. A
// worker that refuses ends the pool: the next one would refuse as well. A lazy pool has none to wait for.
func (p *pool) start(started func(error)) {
	p.started, p.unproved = started, p.config.Workers
	for i := range p.config.Workers {
		p.fill(&place{number: i})
	}
	if p.lazy {
		started(nil)
	}
}

// prove notes that the first worker of at is ready, or why it never was.
func (p *pool) prove(at *place, err error) {
	if p.lazy || at.proved {
		return
	}
	at.proved = true
	p.failed = errors.Join(p.failed, err)
	if p.unproved--; p.unproved > 0 {
		return
	}
	if p.failed == nil {
		p.started(nil)
		return
	}
	p.drain()
	p.end("the start failed")
}

// fill starts the next worker of a place, when one is wanted.
func (p *pool) fill(at *place) {
	switch {
	case p.isEnding():
	case p.lazy && len(p.waiting) == 0 && p.once && p.handed > 0:
		p.drain()
	case p.lazy && len(p.waiting) == 0:
		p.vacant = append(p.vacant, at)
	default:
		p.lives++
		to := post{who: p.who, threads: p.threads(at.number), requests: p.requests(at.number),
			quota: p.pools.quotas.Of(p.who.UID, at.number, float64(p.config.LogBurst), float64(p.config.LogRate))}
		go p.live(at, to)
	}
}

// threads is how many the worker of the i-th place may use: those of a pool that is there all the
// time share Config.Threads, and one of many has few.
func (p *pool) threads(i int) int {
	if p.lazy {
		return max(1, min(p.config.Threads, 2))
	}
	return max(1, share(p.config.Threads, p.config.Workers, i))
}

// requests is how many the worker of the i-th place may answer at one time. Streams of HTTP/2 are
// requests, too: over the pool there are no more of them than connections.
func (p *pool) requests(i int) int {
	if p.once {
		return 1
	}
	return max(1, share(p.config.Connections, p.config.Workers, i))
}

// vacate has the next worker of a place started. The pause before it grows while workers end on their
// first connection or before it: a request that kills workers must not keep the machine busy starting
// them. w is the last one, or nil if it could not be started.
func (p *pool) vacate(at *place, w *worker) {
	p.lives--
	if w != nil && (w.finished > 0 || w.handed > 1) {
		at.failures = 0
	} else {
		at.failures++
	}
	if p.lazy && (w == nil || !w.ready) {
		p.setBarren()
	}
	if wait := pause(at.failures); wait > 0 {
		p.after(wait, func() { p.barren = false; p.rest(); p.fill(at) })
	} else {
		p.fill(at)
	}
	p.rest()
	p.checkOver()
}

// setBarren notes that no worker is available for now. All connections that wait for one are told.
func (p *pool) setBarren() {
	p.barren = true
	p.dropWaiting("its worker can't be started")
	if p.once {
		p.drain()
	}
}

// dropWaiting turns away all connections that wait.
func (p *pool) dropWaiting(why string) {
	for _, c := range p.waiting.all() {
		p.slots.drop(c, statusUnavailable, why)
	}
}

// rest reports that the pool may have come to rest.
func (p *pool) rest() {
	if p.rested != nil {
		p.rested()
	}
}

// pause is how long to wait before the next worker, after so many that did no work.
func pause(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	return min(100*time.Millisecond<<min(failures-1, 10), 30*time.Second)
}

// isEnding reports whether no worker starts any more.
func (p *pool) isEnding() bool { return p.draining || p.retired }

// isIdle reports whether the pool has no connection.
func (p *pool) isIdle() bool {
	for _, w := range p.workers {
		if len(w.held) > 0 {
			return false
		}
	}
	return len(p.waiting) == 0
}

// connections returns those that its workers have.
func (p *pool) connections() (list []*admission.Conn) {
	for _, w := range p.workers {
		for _, c := range w.held {
			list = append(list, &c.Conn)
		}
	}
	return list
}
