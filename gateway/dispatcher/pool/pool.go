package pool

import (
	"time"

	"schedrestd/gateway/dispatcher/admission"
	"schedrestd/gateway/dispatcher/process"
	"schedrestd/internal/semaphore"
	"schedrestd/security"
)

// A Set holds all pools that have not ended, and the state that they share.
type Set struct {
	*Loop
	Slots   *Slots
	Starter *process.Starter
	Done    chan struct{} // closed after Close, when all pools have ended

	pools  map[*Pool]struct{}
	closed bool

	outputs     *semaphore.Semaphore[uint32] // processes that read output, by the uid of their user
	credentials *semaphore.Semaphore[uint32] // processes that get credentials, by the uid of their user
}

// A Pool manages the workers of one identity. It has two places for workers by
// default, so that one worker still serves if the other crashes. When a worker
// exits, the next worker starts in its place. The exported fields must be set
// before the pool starts.
type Pool struct {
	*Set
	Config
	Lazy      bool   // a worker starts only when a connection waits for it; if the start fails, all waiting connections are turned away
	SingleUse bool   // the pool serves only one connection, and ends with it
	OnRotate  func() // called when the pool has given Config.RotateAfter connections to workers; may be nil
	OnIdle    func() // called when the pool may have become idle; may be nil
	OnEnd     func() // called when the pool has no more workers; may be nil

	gen      *Generation
	identity security.Identity // identity of all workers; workers with the same identity may share anything that they have seen
	started  func(error)       // see Set.Start

	workers         map[uint32]*worker
	vacant          []*place  // places that get a worker when a connection waits
	unproved        int       // number of places whose first worker has neither become ready nor failed
	startErr        error     // why the first worker in a place did not become ready
	running         int       // number of workers that were started and have not exited
	waiting         Queue     // connections that no worker has taken yet
	assigned        uint64    // number of connections given to workers
	lastUsed        time.Time // when a connection last arrived or ended
	exitRequestedAt time.Time // when workers were asked to exit
	backingOff      bool      // a worker could not be started, and the next attempt comes after a pause
	retired         bool      // the pool gets no more connections, and workers exit when their last connection ends
	draining        bool      // workers finish their current requests and exit
	askedToFinish   bool      // workers were asked to do so
	ended           bool      // the pool has no more workers
}

// A place has one worker of a pool at a time. When the worker exits, the next
// one starts in the same place.
type place struct {
	number   int
	failures int  // number of successive failures in this place; see refill
	proved   bool // its first worker became ready, or failed
}

// NewPool returns a pool for workers of g. The pool keeps g in use until the
// pool ends.
func (s *Set) NewPool(g *Generation, identity security.Identity) *Pool {
	g.refs++
	return &Pool{Set: s, Config: g.Config, gen: g, identity: identity, lastUsed: time.Now(), workers: map[uint32]*worker{}}
}

// remove removes p, which has ended, from s.
func (s *Set) remove(p *Pool) {
	delete(s.pools, p)
	s.closeIfDone()
}

func (s *Set) closeIfDone() {
	if s.closed && len(s.pools) == 0 {
		close(s.Done)
	}
}

// threads returns how many threads the worker in place i may use. The worker of
// a lazy pool may use at most two. In any other pool, the workers share
// Config.Threads.
func (p *Pool) threads(i int) int {
	if p.Lazy {
		return max(1, min(p.Threads, 2))
	}
	return max(1, share(p.Threads, p.Workers, i))
}

// requests returns how many requests the worker in place i may answer
// concurrently. Each HTTP/2 stream counts as a request. Unless the pool has
// SingleUse set, the limits of its workers add up to Config.Connections.
func (p *Pool) requests(i int) int {
	if p.SingleUse {
		return 1
	}
	return max(1, share(p.Connections, p.Workers, i))
}

// share divides whole into n integers that differ by at most 1, and returns the
// i-th of them.
func share(whole, n, i int) int {
	part := whole / n
	if i < whole%n {
		part++
	}
	return part
}

// Backoff returns the pause before the next start. The pause grows with the
// number of successive failures.
func Backoff(failures int) time.Duration {
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

// Identity returns the identity of the workers.
func (p *Pool) Identity() security.Identity { return p.identity }

// LastUsed returns the time at which a connection last arrived or ended.
func (p *Pool) LastUsed() time.Time { return p.lastUsed }

// notifyIdle reports that the pool may have become idle.
func (p *Pool) notifyIdle() {
	if p.OnIdle != nil {
		p.OnIdle()
	}
}

// dropWaiting turns away all connections that wait.
func (p *Pool) dropWaiting(reason string) {
	for _, c := range p.waiting.TakeAll() {
		p.Slots.Drop(c, Unavailable, reason)
	}
}
