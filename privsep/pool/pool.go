package pool

import (
	"time"

	"schedrestd/privsep/admission"
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

// Pool is the workers of one identity: two by default, so that one may die. It has as many places,
// and starts the next worker of each when that ends. The exported fields are set before it starts.
type Pool struct {
	*Set
	Config
	Lazy   bool   // a worker starts when a connection waits for it; when it can't, all that wait are told so
	Once   bool   // there is one connection, and the pool ends with it
	Worn   func() // called when it has served Config.Wear connections; may be nil
	Rested func() // called when it may have come to rest; may be nil
	Ended  func() // called when nothing of it runs any more; may be nil

	gen     *Generation
	who     security.Identity // every worker's; what one has seen, another may see
	lost    *limitedCount     // of workers that ended badly or did not start, over many pools; nil: each is logged
	routine *limitedCount     // … of what happens to each worker
	started func(error)       // see Set.Start

	workers  map[uint32]*worker
	vacant   []*place  // that wait for demand
	unproved int       // places whose first worker is neither ready nor gone
	failed   error     // why first workers were not ready
	lives    int       // of workers that were begun and have not ended
	waiting  Queue     // until a worker takes them
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

// NewPool makes a pool of g, which does not end before it.
func (s *Set) NewPool(g *Generation, who security.Identity) *Pool {
	g.users++
	return &Pool{Set: s, Config: g.Config, gen: g, who: who, used: time.Now(), workers: map[uint32]*worker{}}
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

// threads is how many the worker of the i-th place may use: those of a pool that is there all the
// time share Config.Threads, and one of many has few.
func (p *Pool) threads(i int) int {
	if p.Lazy {
		return max(1, min(p.Threads, 2))
	}
	return max(1, share(p.Threads, p.Workers, i))
}

// requests is how many the worker of the i-th place may answer at one time. Streams of HTTP/2 are
// requests, too: over the pool there are no more of them than connections.
func (p *Pool) requests(i int) int {
	if p.Once {
		return 1
	}
	return max(1, share(p.Connections, p.Workers, i))
}

// share is the i-th of n parts of a whole: together they are the whole, exactly.
func share(whole, n, i int) int {
	part := whole / n
	if i < whole%n {
		part++
	}
	return part
}

// Pause returns how long to wait before the next worker, after so many that did no work.
func Pause(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	return min(100*time.Millisecond<<min(failures-1, 10), 30*time.Second)
}

// IsEnding reports whether no worker starts any more.
func (p *Pool) IsEnding() bool { return p.draining || p.retired }

// IsIdle reports whether the pool has no connection.
func (p *Pool) IsIdle() bool {
	for _, w := range p.workers {
		if len(w.held) > 0 {
			return false
		}
	}
	return len(p.waiting) == 0
}

// Held returns the connections that its workers have.
func (p *Pool) Held() (list []*admission.Conn) {
	for _, w := range p.workers {
		for _, c := range w.held {
			list = append(list, &c.Conn)
		}
	}
	return list
}

// Who returns the identity of the workers.
func (p *Pool) Who() security.Identity { return p.who }

// Used returns when a connection last came or ended.
func (p *Pool) Used() time.Time { return p.used }

// rest reports that the pool may have come to rest.
func (p *Pool) rest() {
	if p.Rested != nil {
		p.Rested()
	}
}

// dropWaiting turns away all connections that wait.
func (p *Pool) dropWaiting(why string) {
	for _, c := range p.waiting.All() {
		p.Slots.Drop(c, Unavailable, why)
	}
}
