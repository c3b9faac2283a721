package privsep

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/admission"
	"schedrestd/privsep/relay"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
)

// pool is the workers of one identity: two by default, so that one may die. For each
// there is a goroutine (keep) that starts the next one when it ends.
type pool struct {
	means
	gen     *generation
	config  Config
	who     security.Identity // every worker's; what one has seen, another may see
	log     *slog.Logger
	lazy    bool   // a worker starts when a connection waits for it; when it can't, all who wait are told so
	once    bool   // there is one connection, and the pool ends with it
	lost    *tally // of workers that ended badly or not began, over many pools; nil: each is told
	routine *tally // … of what happens to each worker
	worn    func() // called when it has served Config.Wear connections; may be nil
	rested  func() // called when it may have come to rest; may be nil

	mu       sync.Mutex
	workers  map[uint32]*worker
	waiting  []*connection // until a worker takes them or their time is over
	handed   uint64        // connections given to workers
	used     time.Time     // when a connection last came or ended
	told     time.Time     // when workers were told to end
	barren   bool          // a worker could not be started, and none is tried for a moment
	retired  bool          // no more connections come; those that are there end by themselves
	draining bool          // … or are ended when they are answered
	quit     chan struct{} // closed when either begins
	demand   chan struct{} // gets a token when a connection waits
	running  sync.WaitGroup
	gone     chan struct{} // closed when nothing runs any more
}

// newPool makes a pool of g, which does not end before it.
func newPool(m means, g *generation, who security.Identity) *pool {
	g.use()
	return &pool{means: m, gen: g, config: g.config, who: who, log: g.config.Log, used: time.Now(),
		workers: map[uint32]*worker{}, quit: make(chan struct{}), demand: make(chan struct{}, 1), gone: make(chan struct{})}
}

// start starts the first workers and returns when each has proved its posture. A
// worker that refuses stops the start: the next one would refuse as well. A lazy pool has
// none to wait for.
func (p *pool) start() error {
	first := make(chan error, p.config.Workers)
	for i := range p.config.Workers {
		p.running.Go(func() { p.keep(i, first) })
	}
	go func() { p.running.Wait(); close(p.gone) }()
	go p.listenForSilence()
	if p.lazy {
		return nil
	}
	var err error
	for range p.config.Workers {
		err = errors.Join(err, <-first)
	}
	if err != nil {
		p.drain()
		p.end("the start failed")
		<-p.gone
	}
	return err
}

// threads is how many the worker of the i-th keep may use: those of a pool that is there all the
// time share Config.Threads, and one of many has few.
func (p *pool) threads(i int) int {
	if p.lazy {
		return max(1, min(p.config.Threads, 2))
	}
	return max(1, share(p.config.Threads, p.config.Workers, i))
}

// requests is how many the worker of the i-th keep may answer at one time. Streams of HTTP/2 are
// requests, too: over the pool there are no more of them than connections.
func (p *pool) requests(i int) int {
	if p.once {
		return 1
	}
	return max(1, share(p.config.Connections, p.config.Workers, i))
}

// keep has one worker running for as long as the pool lives. The pause before the next worker
// grows while workers die on their first connection or before it: a request that
// kills workers must not keep the machine busy starting them.
func (p *pool) keep(i int, first chan<- error) {
	failures := 0
	for p.isWanted() {
		worked, ready, err := p.live(i, first)
		first = nil
		if worked {
			failures = 0
		} else {
			failures++
		}
		if errs.KindOf(err) == errs.Internal && err != nil {
			p.complain(slog.LevelError, "a worker can't be started", errs.LogAttrs(errs.HintOf(err), "uid", p.who.UID, "error", err)...)
		}
		if p.lazy && !ready {
			p.setBarren(true)
		}
		select {
		case <-p.quit:
			return
		case <-time.After(pause(failures)):
			p.setBarren(false)
		}
	}
}

// isWanted waits until a worker is wanted. It reports false when none will be.
func (p *pool) isWanted() bool {
	for p.lazy {
		p.mu.Lock()
		waits, over := len(p.waiting) > 0, p.once && p.handed > 0
		p.mu.Unlock()
		switch {
		case waits:
			return true
		case over:
			p.drain()
			return false
		}
		select {
		case <-p.demand:
		case <-p.quit:
			return false
		}
	}
	return true
}

// setBarren notes that no worker can be had for now. All who wait for one are told.
func (p *pool) setBarren(yes bool) {
	p.mu.Lock()
	p.barren = yes
	var waiting []*connection
	if yes {
		waiting = p.takeWaiting()
	}
	p.mu.Unlock()
	for _, c := range waiting {
		p.slots.drop(c, statusUnavailable, "its worker can't be started")
	}
	if yes && p.once {
		p.drain()
	}
	p.rest()
}

// takeWaiting empties the queue; p.mu is held.
func (p *pool) takeWaiting() []*connection {
	list := p.waiting
	p.waiting = nil
	for _, c := range list {
		c.late.Stop()
	}
	return list
}

// rest says that the pool may have come to rest.
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

// live is the whole life of one worker: start, listen to it, bury it. worked tells
// whether it did any work, ready whether it could have. The first worker of each keep
// reports on first whether it got ready.
func (p *pool) live(i int, first chan<- error) (worked, ready bool, err error) {
	report := func(err error) {
		if first != nil {
			first <- err
			first = nil
		}
	}
	w, err := p.enlist(i)
	if err != nil {
		report(err)
		return false, false, err
	}
	late := time.AfterFunc(p.config.StartLimit, func() {
		p.endOne(w, fmt.Sprintf("it was not ready within %s", p.config.StartLimit), func() bool { return !w.ready })
	})
	err = p.serveChannel(w, func() { late.Stop(); ready = true; report(nil) })
	late.Stop()
	worked, err = p.discharge(w, err)
	report(err)
	p.rest()
	return worked, ready, nil
}

// enlist starts a worker and puts it on the list.
func (p *pool) enlist(i int) (*worker, error) {
	if p.isEnding() {
		return nil, errs.New(errs.Unavailable, "no worker starts while the pool comes to its end")
	}
	w, err := p.hire(p.config, post{who: p.who, place: i, threads: p.threads(i), requests: p.requests(i)})
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.workers[w.Number] = w
	stale := p.draining || p.retired // it began while the process started
	p.mu.Unlock()
	if stale {
		p.endOne(w, "it is not needed any more", nil)
	}
	return w, nil
}

func (p *pool) isEnding() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.draining || p.retired
}

// serveChannel hears a worker until its channel closes. A breach of the book, or a message
// about what is not the worker's, is returned: it ends the worker.
func (p *pool) serveChannel(w *worker, ready func()) error {
	for {
		m, err := w.Channel.Receive()
		if err != nil {
			return err
		}
		switch m := m.Message.(type) {
		case *ipc.Ready:
			if err = p.gen.greet(w); err == nil {
				p.setReady(w, security.Sealed(*m))
				ready()
			}
		case *ipc.Refused:
			return errs.New(errs.Denied, "a worker refuses to serve: %s", relay.Printable(m.Reason))
		case *ipc.Taken:
			err = p.taken(w, m.ID)
		case *ipc.Done:
			err = p.release(w, m.ID)
		case *ipc.Progress:
			err = p.progress(w, m)
		case *ipc.Offence:
			err = p.offence(w, m)
		case *ipc.Pong:
			err = p.heard(w, m.Number)
		default:
			var done bool
			if done, err = w.hear(m); !done {
				err = ipc.Unheard(m)
			}
		}
		if err != nil {
			return err
		}
	}
}

func (p *pool) setReady(w *worker, sealed security.Sealed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.ready = true
	p.dequeue()
	p.mention("worker is ready", "worker", w.Number, "pid", w.PID, "uid", p.who.UID, "gid", p.who.GID, "sealed", sealed.String(),
		"took", time.Since(w.Started).Round(10*time.Microsecond))
}

// discharge takes a worker off the list, frees the slots of what it held, buries it
// and logs how it ended. why is what ended the listening.
func (p *pool) discharge(w *worker, why error) (worked bool, err error) {
	p.mu.Lock()
	delete(p.workers, w.Number)
	drained := p.draining || p.retired
	suspects := p.suspects(w)
	lost, again := p.orphans(w)
	worked = w.finished > 0 || w.handed > 1
	ending := w.Ending
	if w.breach != nil {
		why = w.breach
	}
	p.mu.Unlock()

	patience := spawn.LastWords
	closed := errors.Is(why, io.EOF)
	if !closed {
		patience = 0
	}
	status := w.Reap(patience)
	p.gen.audit.Exited(w.Number, status)
	attrs := []any{"worker", w.Number, "pid", w.PID, "uid", p.who.UID, "connections_lost", lost, "handed_again", again, "status", status}
	switch {
	case w.Caged:
		p.slots.counts.caged.add(1)
		p.slots.crashed(suspects)
		if !closed {
			attrs = append(attrs, "because", why)
		}
		p.alarm(spawn.WorkerCaged, attrs...)
		err = errs.New(errs.Internal, "%s", spawn.WorkerCaged).
			WithHint("on a kernel that nobody has tried: SCHEDRESTD_SECURITY=audit_confinement serves, and the kernel's log has the system call")
	case ending != "":
		p.slots.counts.killed.add(1)
		p.complain(slog.LevelWarn, "worker was ended", append(attrs, "because", ending)...)
		err = errs.New(errs.Unavailable, "a worker was ended: %s", ending)
	case !closed:
		p.slots.counts.killed.add(1)
		p.slots.crashed(suspects)
		attrs = append(attrs, "because", why)
		if errs.KindOf(why) == errs.Denied { // it refuses to serve, which is no breach
			p.complain(slog.LevelError, "worker was killed", attrs...)
		} else {
			p.alarm("worker was killed", attrs...)
		}
		err = why
	case drained && lost == 0:
		p.slots.counts.done.add(1)
		p.mention("worker is done", attrs...)
	default:
		p.slots.counts.died.add(1)
		if w.Crashed {
			p.slots.crashed(suspects)
		}
		p.complain(slog.LevelError, "worker died", attrs...)
		err = errs.New(errs.Internal, "a worker died before it was ready: %s", status).
			WithHint("its last words are in the log above")
	}
	return worked, err
}

// isIdle tells whether the pool has no connection, and since when.
func (p *pool) isIdle() (bool, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.workers {
		if len(w.held) > 0 {
			return false, p.used
		}
	}
	return len(p.waiting) == 0, p.used
}

// connections returns those that its workers have.
func (p *pool) connections() (list []*admission.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.workers {
		for _, c := range w.held {
			list = append(list, &c.Conn)
		}
	}
	return list
}
