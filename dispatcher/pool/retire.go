package pool

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"schedrestd/dispatcher/process"
	"schedrestd/ipc/work"
)

// Workers and their pool end in one of three ways: they are killed for a
// reason, drained when the gateway stops, or retired while the gateway
// continues to serve.

// reportViolation kills the worker with the given number if it belongs to p,
// because a service has detected that the worker broke the protocol.
func (p *Pool) reportViolation(number uint32, why string) {
	if w := p.workers[number]; w != nil && w.EndReason == "" {
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

// Drain asks every worker to finish its current requests, and starts no more
// workers. It kills workers that it can't reach, and drops the connections that
// wait for a worker.
func (p *Pool) Drain() {
	if p.draining {
		return
	}
	p.draining, p.told = true, time.Now()
	p.dropWaiting(Stopping)
	for _, w := range p.workers {
		if err := w.Channel.TrySend(new(work.Drain)); err != nil && !errors.Is(err, os.ErrClosed) {
			w.Condemn("did not receive the request to finish")
		}
	}
	p.checkOver()
}

// Retire lets the pool end: no new worker starts, and the existing ones exit
// with their last connection. It returns the connections that still wait, so
// that another pool can serve them.
func (p *Pool) Retire() []*Connection {
	if p.IsLeaving() {
		return nil
	}
	p.retired, p.told = true, time.Now()
	for _, w := range p.workers {
		if !w.ready {
			w.Condemn("is no longer needed")
			continue
		}
		// If the channel is full, Send waits until the worker reads. A worker
		// that does not read at all is killed, because it does not answer a
		// Ping.
		go w.Channel.Send(new(work.Retire))
	}
	waiting := p.waiting.All()
	p.checkOver()
	return waiting
}

// EndIdle kills workers that were asked to exit, have held no connection for
// longer than limit, and are still running. Otherwise such workers could keep
// requesting connections to daemons, and could keep other workers from
// starting.
func (p *Pool) EndIdle(limit time.Duration) {
	if p.told.IsZero() || time.Since(p.told) < limit || time.Since(p.used) < limit {
		return
	}
	for _, w := range p.workers {
		if len(w.held) == 0 {
			w.Condemn(fmt.Sprintf("was to exit, has had no connection for %s, and still runs", limit))
		}
	}
}

// endOld handles retired workers that still run after the time Farewell. It
// asks workers that still have connections to finish, and kills workers that do
// not finish. Otherwise a worker that never sends Done would survive every
// reload. It would keep its channel to the keeper, and its connections to the
// daemons of an old configuration.
func (p *Pool) endOld() {
	told := time.Since(p.told)
	switch {
	case !p.retired:
	case p.draining && told > p.Setup.Limits.Drain+process.LastWords:
		p.End("was retired, told to finish, and still runs")
	case !p.draining && told > p.Farewell:
		for _, w := range p.workers {
			p.complain(slog.LevelWarn, "retired worker told to finish", "worker", w.Number, "pid", w.PID, "uid", p.who.UID, "after", told.Round(time.Second))
		}
		p.Drain()
	}
}

// checkOver marks the pool as ended when none of its workers runs any more.
func (p *Pool) checkOver() {
	if p.over || p.lives > 0 || !p.IsLeaving() {
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

// logCounters asks the workers that serve to log their counters.
func (p *Pool) logCounters() {
	for _, w := range p.workers {
		if w.ready {
			w.Show()
		}
	}
}
