package privsep

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"schedrestd/ipc"
	"schedrestd/privsep/spawn"
)

// How workers and their pool come to an end: killed for a reason, drained with the gateway, or
// retired while it serves on.

// endOne kills w for a reason of the parent's own, when still holds (nil: always).
func (p *pool) endOne(w *worker, why string, still func() bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.workers[w.Number] == w && (still == nil || still()) {
		w.Condemn(why)
	}
}

// accuse kills the worker of that number, if it is one of p's, for a breach of the book that somebody else has seen.
func (p *pool) accuse(number uint32, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.workers[number]; w != nil && w.Ending == "" {
		w.breach = errors.New(why)
		w.Kill()
	}
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
	p.draining, p.told = true, time.Now()
	if !p.retired {
		close(p.quit)
	}
	list := slices.Collect(maps.Values(p.workers))
	waiting := p.takeWaiting()
	p.mu.Unlock()
	for _, c := range waiting {
		p.slots.drop(c, statusUnavailable, stopping)
	}
	for _, w := range list {
		if err := w.Channel.TrySend(new(ipc.Drain)); err != nil && !errors.Is(err, os.ErrClosed) {
			p.endOne(w, "it could not be told to drain", nil)
		}
	}
}

// retire lets the pool come to its end: no new worker starts, and those that are there exit
// with their last connection. It gives what still waits, for another pool.
func (p *pool) retire() []*connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.retired || p.draining {
		return nil
	}
	p.retired, p.told = true, time.Now()
	close(p.quit)
	for _, w := range p.workers {
		if !w.ready {
			w.Condemn("it is not needed any more")
			continue
		}
		// One that does not read its channel is told when it does, or Ping judges it.
		go w.Channel.Send(new(ipc.Retire))
	}
	return p.takeWaiting()
}

// endIdle ends those that were told to end, have held nothing for so long, and are there: they could do errands for ever,
// and take the room of others.
func (p *pool) endIdle(limit time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told.IsZero() || time.Since(p.told) < limit || time.Since(p.used) < limit {
		return
	}
	for _, w := range p.workers {
		if len(w.held) == 0 {
			w.Condemn(fmt.Sprintf("it was told to end, has held nothing for %s, and is still there", limit))
		}
	}
}

// endOld has retired workers finish that still have connections when their time is over, and ends who does not: one that never says Done
// would outlive each reload, with its way to the keeper and to the daemons of a configuration that is no more.
func (p *pool) endOld() {
	p.mu.Lock()
	retired, draining, told := p.retired, p.draining, time.Since(p.told)
	list := slices.Collect(maps.Values(p.workers))
	p.mu.Unlock()
	switch {
	case !retired:
	case draining && told > p.config.Setup.Limits.Drain+spawn.LastWords:
		p.end("it was retired, and then told to finish, and is still there")
	case !draining && told > p.config.Farewell:
		for _, w := range list {
			p.complain(slog.LevelWarn, "a retired worker has to finish", "worker", w.Number, "pid", w.PID, "uid", p.who.UID, "after", told.Round(time.Second))
		}
		p.drain()
	}
}
