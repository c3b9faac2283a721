package pool

import (
	"time"

	"schedrestd/dispatcher/admission"
	"schedrestd/dispatcher/process"
	"schedrestd/dispatcher/relay"
	"schedrestd/security"
)

// Set holds all pools that still have workers, including those that are ending.
// It also holds the state that the pools share.
type Set struct {
	*Loop
	Slots   *Slots
	Starter *process.Starter
	Over    chan struct{} // closed after Close, when no pool runs any more

	list   map[*Pool]struct{}
	closed bool
	quotas relay.Quotas // limits the lines that workers may log

	// Counts of events of workers that users can start and end.
	lost, routine *limitedCount
}

// Pool manages the workers of one identity: two by default, because one of them
// may crash. It has a place for each worker. When a worker ends, the next
// worker starts in its place. The exported fields are set before the pool
// starts.
type Pool struct {
	*Set
	Config
	Lazy    bool   // a worker starts only when a connection waits for it; if the start fails, all waiting connections are turned away
	Once    bool   // the pool serves only one connection, and ends together with the connection
	WornOut func() // called when the pool has served Config.Wear connections; may be nil
	Rested  func() // called when the pool may have become idle; may be nil
	Ended   func() // called when the pool has no more workers; may be nil

	gen     *Generation
	who     security.Identity // identity of all workers; they may share anything that they have seen
	lost    *limitedCount     // counts workers of many pools that failed or did not start; nil: each one is logged
	routine *limitedCount     // counts routine events of workers in the same way
	started func(error)       // see Set.Start

	workers  map[uint32]*worker
	vacant   []*place  // places that get a worker when a connection waits
	unproved int       // number of places whose first worker is neither ready nor gone
	failed   error     // why a first worker did not become ready
	lives    int       // number of workers that were started and have not exited
	waiting  Queue     // connections that no worker has taken yet
	handed   uint64    // number of connections given to workers
	used     time.Time // when a connection last arrived or ended
	told     time.Time // when workers were asked to exit
	barren   bool      // a worker could not be started, and the next attempt comes after a pause
	retired  bool      // the pool gets no more connections; the existing connections end by themselves
	draining bool      // connections end when their requests are answered
	over     bool      // the pool has no more workers
}

// place is a worker's place in its pool.
type place struct {
	number   int
	failures int  // number of successive workers that did no work
	proved   bool // its first worker was ready, or has ended
}

// NewPool returns a pool of workers of g. The pool holds g until it ends.
func (s *Set) NewPool(g *Generation, who security.Identity) *Pool {
	g.users++
	return &Pool{Set: s, Config: g.Config, gen: g, who: who, used: time.Now(), workers: map[uint32]*worker{}}
}

// remove removes p, which has ended, from the list.
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
// worker of a lazy pool has only a few. The workers of any other pool share
// Config.Threads.
func (p *Pool) threads(i int) int {
	if p.Lazy {
		return max(1, min(p.Threads, 2))
	}
	return max(1, share(p.Threads, p.Workers, i))
}

// requests returns how many requests the worker of the i-th place may answer
// concurrently. Streams of HTTP/2 are requests, too. The limits of all workers
// in a pool add up to its number of connections.
func (p *Pool) requests(i int) int {
	if p.Once {
		return 1
	}
	return max(1, share(p.Connections, p.Workers, i))
}

// share divides the number whole into n integers that differ by at most 1 and
// add up to it, and returns the i-th of them.
func share(whole, n, i int) int {
	part := whole / n
	if i < whole%n {
		part++
	}
	return part
}

// Pause returns how long to wait before the next worker starts, after the given
// number of successive workers that did no work.
func Pause(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	return min(100*time.Millisecond<<min(failures-1, 10), 30*time.Second)
}

// IsLeaving reports whether the pool starts no more workers.
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

// Held returns the connections that the pool's workers have.
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

// Used returns when a connection last arrived or ended.
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
