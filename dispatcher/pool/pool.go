package pool

import (
	"time"

	"schedrestd/dispatcher/admission"
	"schedrestd/dispatcher/process"
	"schedrestd/dispatcher/relay"
	"schedrestd/security"
)

// Set holds every pool that runs, including those that are ending, and the
// state that they share.
type Set struct {
	*Loop
	Slots   *Slots
	Starter *process.Starter
	Over    chan struct{} // closed when no pool runs, after Close

	list   map[*Pool]struct{}
	closed bool
	quotas relay.Quotas // of what workers log

	// For workers that users can start and end.
	lost, routine *limitedCount
}

// Pool manages the workers of one identity: two by default, because one may
// crash. It has a place for each, and starts the next worker of a place when
// the last one ends. The exported fields are set before it starts.
type Pool struct {
	*Set
	Config
	Lazy    bool   // a worker starts when a connection waits for it; if that fails, all waiting connections are turned away
	Once    bool   // there is one connection, and the pool ends with it
	WornOut func() // called when it has served Config.Wear connections; may be nil
	Rested  func() // called when it may have come to rest; may be nil
	Ended   func() // called when no worker of it runs any more; may be nil

	gen     *Generation
	who     security.Identity // of every worker; they may share what they have seen
	lost    *limitedCount     // counts workers that failed or did not start, in many pools; nil: each is logged
	routine *limitedCount     // … of routine events
	started func(error)       // see Set.Start

	workers  map[uint32]*worker
	vacant   []*place  // that wait for demand
	unproved int       // places whose first worker is neither ready nor gone
	failed   error     // why first workers were not ready
	lives    int       // workers that were started and have not exited
	waiting  Queue     // until a worker takes them
	handed   uint64    // connections given to workers
	used     time.Time // when a connection last came or ended
	told     time.Time // when workers were asked to end
	barren   bool      // a worker could not be started, and none is tried for a moment
	retired  bool      // no more connections come; the existing ones end by themselves
	draining bool      // … or are ended when they are answered
	over     bool      // no worker of it runs any more
}

// place is a worker's place in its pool.
type place struct {
	number   int
	failures int  // workers in a row that did no work
	proved   bool // its first one was ready, or has ended
}

// NewPool makes a pool of g, which g outlives.
func (s *Set) NewPool(g *Generation, who security.Identity) *Pool {
	g.users++
	return &Pool{Set: s, Config: g.Config, gen: g, who: who, used: time.Now(), workers: map[uint32]*worker{}}
}

// remove takes p, which has ended, off the list.
func (s *Set) remove(p *Pool) {
	delete(s.list, p)
	s.checkOver()
}

func (s *Set) checkOver() {
	if s.closed && len(s.list) == 0 {
		close(s.Over)
	}
}

// threads returns how many threads the worker of the i-th place may use. The
// workers of a permanent pool share Config.Threads, and the worker of a lazy
// pool has few.
func (p *Pool) threads(i int) int {
	if p.Lazy {
		return max(1, min(p.Threads, 2))
	}
	return max(1, share(p.Threads, p.Workers, i))
}

// requests returns how many requests the worker of the i-th place may answer
// concurrently. Streams of HTTP/2 are requests, too: the whole pool has no more
// of them than connections.
func (p *Pool) requests(i int) int {
	if p.Once {
		return 1
	}
	return max(1, share(p.Connections, p.Workers, i))
}

// share returns the i-th of n parts of a whole. Their sum is exactly the whole.
func share(whole, n, i int) int {
	part := whole / n
	if i < whole%n {
		part++
	}
	return part
}

// Pause returns how long to wait before the next worker, after that many
// workers in a row did no work.
func Pause(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	return min(100*time.Millisecond<<min(failures-1, 10), 30*time.Second)
}

// IsLeaving reports whether no worker starts any more.
func (p *Pool) IsLeaving() bool { return p.draining || p.retired }

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

// Who gives the identity of the workers.
func (p *Pool) Who() security.Identity { return p.who }

// Used returns when a connection last came or ended.
func (p *Pool) Used() time.Time { return p.used }

// rest reports that the pool may have become idle.
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
