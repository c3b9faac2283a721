package pool

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"schedrestd/ipc"
	"schedrestd/privsep/spawn"
)

// Workers and their pool end in three ways: killed for a reason, drained with the gateway, or
// retired while it serves on.

// reportViolation kills the worker of that number, if it is one of p's, for a breach of the protocol that a service has seen.
func (p *Pool) reportViolation(number uint32, why string) {
	if w := p.workers[number]; w != nil && w.Ending == "" {
		w.breach = errors.New(why)
		w.Kill()
	}
}

// End kills every worker.
func (p *Pool) End(why string) {
	for _, w := range p.workers {
		w.Condemn(why)
	}
}

// Drain tells every worker to finish what it is answering; no new one starts. Those
// that can't be told are ended, and what still waits for one is dropped.
func (p *Pool) Drain() {
	if p.draining {
		return
	}
	p.draining, p.told = true, time.Now()
	p.dropWaiting(Stopping)
	for _, w := range p.workers {
		if err := w.Channel.TrySend(new(ipc.Drain)); err != nil && !errors.Is(err, os.ErrClosed) {
			w.Condemn("it could not be told to drain")
		}
	}
	p.checkOver()
}

// Retire lets the pool come to its end: no new worker starts, and those that are there exit
// with their last connection. It returns what still waits, for another pool.
func (p *Pool) Retire() []*Connection {
	if p.IsEnding() {
		return nil
	}
	p.retired, p.told = true, time.Now()
	for _, w := range p.workers {
		if !w.ready {
			w.Condemn("it is not needed any more")
			continue
		}
		// One that does not read its channel is told when it does, or Ping judges it.
		go w.Channel.Send(new(ipc.Retire))
	}
	waiting := p.waiting.All()
	p.checkOver()
	return waiting
}

// EndIdle ends those that were told to end, have held nothing for so long, and are there: they could ask for connections to daemons
// for ever, and take the room of others.
func (p *Pool) EndIdle(limit time.Duration) {
	if p.told.IsZero() || time.Since(p.told) < limit || time.Since(p.used) < limit {
		return
	}
	for _, w := range p.workers {
		if len(w.held) == 0 {
			w.Condemn(fmt.Sprintf("it was told to end, has held nothing for %s, and is still there", limit))
		}
	}
}

// endOld has retired workers finish that still have connections when their time is over, and ends those that do not: one that never
// says Done would outlive each reload, with its channel to the keeper and connections to the daemons of an old configuration.
func (p *Pool) endOld() {
	told := time.Since(p.told)
	switch {
	case !p.retired:
	case p.draining && told > p.Setup.Limits.Drain+spawn.LastWords:
		p.End("it was retired, and then told to finish, and is still there")
	case !p.draining && told > p.Farewell:
		for _, w := range p.workers {
			p.complain(slog.LevelWarn, "a retired worker has to finish", "worker", w.Number, "pid", w.PID, "uid", p.who.UID, "after", told.Round(time.Second))
		}
		p.Drain()
	}
}

// checkOver notes that the pool has ended, once nothing of it runs.
func (p *Pool) checkOver() {
	if p.over || p.lives > 0 || !p.IsEnding() {
		return
	}
	p.over = true
	p.remove(p)
	p.gen.Release()
	if p.failed != nil && p.unproved == 0 {
		p.started(p.failed)
	}
	if p.Ended != nil {
		p.Ended()
	}
}

// logCounters asks the workers that serve to write what they counted to the log.
func (p *Pool) logCounters() {
	for _, w := range p.workers {
		if w.ready {
			w.Signal(syscall.SIGUSR1)
		}
	}
}
