package privsep

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/security"
)

// pool is the workers of one identity: two by default, so that one may die. For each
// there is a goroutine (keep) that starts the next one when it ends.
type pool struct {
	config  Config
	who     security.Identity // every worker's; what one has seen, another may see
	spawner *spawner
	slots   *slots
	log     *slog.Logger
	hello   func(*worker) error // tells a worker that is ready what else it needs, before its first connection; may be nil

	mu       sync.Mutex
	workers  map[uint32]*worker
	waiting  []*connection // until a worker takes them or their time is over
	id       uint64        // of the last connection
	draining bool
	quit     chan struct{} // closed when draining starts
	running  sync.WaitGroup
}

func newPool(c Config, who security.Identity, s *spawner, slots *slots) *pool {
	return &pool{config: c, who: who, spawner: s, slots: slots, log: c.Log,
		workers: map[uint32]*worker{}, quit: make(chan struct{})}
}

// start starts the first workers and returns when each has proved its posture. A
// worker that refuses stops the start: the next one would refuse as well.
func (p *pool) start() error {
	first := make(chan error, p.config.Workers)
	for range p.config.Workers {
		p.running.Go(func() { p.keep(first) })
	}
	go p.listenForSilence()
	var err error
	for range p.config.Workers {
		err = errors.Join(err, <-first)
	}
	if err != nil {
		p.drain()
		p.end("the start failed")
		p.running.Wait()
	}
	return err
}

// keep has one worker running for as long as the pool lives. The pause before the next worker
// grows while workers die on their first connection or before it: a request that
// kills workers must not keep the machine busy starting them.
func (p *pool) keep(first chan<- error) {
	failures := 0
	for {
		worked, err := p.live(first)
		first = nil
		if worked {
			failures = 0
		} else {
			failures++
		}
		if errs.KindOf(err) == errs.Internal && err != nil {
			p.log.Error("a worker can't be started", "error", err)
		}
		select {
		case <-p.quit:
			return
		case <-time.After(pause(failures)):
		}
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
// whether it did any work. The first worker of each keep reports on first
// whether it got ready.
func (p *pool) live(first chan<- error) (worked bool, err error) {
	report := func(err error) {
		if first != nil {
			first <- err
			first = nil
		}
	}
	w, err := p.enlist()
	if w == nil {
		report(err)
		return false, err
	}
	if err == nil {
		late := time.AfterFunc(p.config.StartLimit, func() {
			p.endOne(w, fmt.Sprintf("it was not ready within %s", p.config.StartLimit), func() bool { return !w.ready })
		})
		err = p.serveChannel(w, func() { late.Stop(); report(nil) })
		late.Stop()
	}
	worked, err = p.discharge(w, err)
	report(err)
	return worked, nil
}

// enlist starts a worker and puts it on the list.
func (p *pool) enlist() (*worker, error) {
	p.mu.Lock()
	if p.draining {
		p.mu.Unlock()
		return nil, errs.New(errs.Unavailable, "no worker starts while the pool drains")
	}
	p.mu.Unlock()
	w, err := p.spawn()
	if w == nil {
		return nil, err
	}
	p.mu.Lock()
	p.workers[w.number] = w
	stale := p.draining // it began while the process started
	p.mu.Unlock()
	if stale {
		p.endOne(w, "the gateway stops", nil)
	}
	return w, err
}

// serveChannel hears a worker until its channel closes. A breach of the book, or a message
// about what is not the worker's, is returned: it ends the worker.
func (p *pool) serveChannel(w *worker, ready func()) error {
	for {
		m, err := w.channel.Receive()
		if err != nil {
			return err
		}
		switch m := m.Message.(type) {
		case *ipc.Ready:
			if p.hello != nil {
				err = p.hello(w)
			}
			if err == nil {
				p.setReady(w)
				ready()
			}
		case *ipc.Refused:
			return errs.New(errs.Denied, "a worker refuses to serve: %s", printable(m.Reason))
		case *ipc.Taken:
			err = p.taken(w, m.ID)
		case *ipc.Done:
			err = p.release(w, m.ID)
		case *ipc.Pong:
			err = p.heard(w, m.Number)
		default:
			err = fmt.Errorf("%s is in the book, and nobody reads it here", m.Kind())
		}
		if err != nil {
			return err
		}
	}
}

func (p *pool) setReady(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.ready = true
	p.dequeue()
	p.log.Info("worker is ready", "worker", w.number, "pid", w.pid, "uid", p.who.UID, "gid", p.who.GID,
		"took", time.Since(w.started).Round(10*time.Microsecond))
}

// discharge takes a worker off the list, frees the slots of what it held, buries it
// and logs how it ended. why is what ended the listening.
func (p *pool) discharge(w *worker, why error) (worked bool, err error) {
	p.mu.Lock()
	delete(p.workers, w.number)
	drained := p.draining
	lost, again := p.orphans(w)
	worked = w.finished > 0 || w.handed > 1
	ending := w.ending
	p.mu.Unlock()

	patience := lastWords
	closed := errors.Is(why, io.EOF)
	if !closed {
		patience = 0
	}
	status := w.bury(patience)
	attrs := []any{"worker", w.number, "pid", w.pid, "uid", p.who.UID, "connections_lost", lost, "handed_again", again, "status", status}
	switch {
	case ending != "":
		p.log.Warn("worker was ended", append(attrs, "because", ending)...)
		err = errs.New(errs.Unavailable, "a worker was ended: %s", ending)
	case !closed:
		p.log.Error("worker was killed", append(attrs, "because", why)...)
		err = why
	case drained && lost == 0:
		p.log.Info("worker is done", attrs...)
	default:
		p.log.Error("worker died", attrs...)
		err = errs.New(errs.Internal, "a worker died before it was ready: %s", status).
			WithHint("its last words are in the log above")
	}
	return worked, err
}

// endOne kills w for a reason of the parent's own, when still holds (nil: always).
func (p *pool) endOne(w *worker, why string, still func() bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.workers[w.number] != w || still != nil && !still() {
		return
	}
	if w.ending == "" {
		w.ending = why
	}
	w.kill()
}

// end kills every worker.
func (p *pool) end(why string) {
	p.mu.Lock()
	list := slices.Collect(maps.Values(p.workers))
	p.mu.Unlock()
	for _, w := range list {
		p.endOne(w, why, nil)
	}
}

// drain tells every worker to finish what it is answering; no new one starts. Those
// that can't be told are ended, and what still waits for one is dropped.
func (p *pool) drain() {
	p.mu.Lock()
	if p.draining {
		p.mu.Unlock()
		return
	}
	p.draining = true
	close(p.quit)
	list := slices.Collect(maps.Values(p.workers))
	waiting := p.waiting
	p.waiting = nil
	p.mu.Unlock()
	for _, c := range waiting {
		c.late.Stop()
		p.slots.drop(c, "the gateway stops")
	}
	for _, w := range list {
		if err := w.channel.TrySend(new(ipc.Drain)); err != nil && !errors.Is(err, os.ErrClosed) {
			p.endOne(w, "it could not be told to drain", nil)
		}
	}
}
