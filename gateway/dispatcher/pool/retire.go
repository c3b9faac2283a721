package pool

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"schedrestd/gateway/dispatcher/process"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// There are three ways to end workers and their pool. They can be killed,
// drained when the gateway stops, or retired while the gateway continues to
// serve.

// reportViolation kills the worker with this number, if the worker belongs to
// p. It is called when a service has detected that the worker broke the
// protocol.
func (p *Pool) reportViolation(number uint32, reason string) {
	if w := p.workers[number]; w != nil && w.EndReason == "" {
		w.violation = errors.New(reason)
		w.Kill()
	}
}

func (p *Pool) Kill(reason string) {
	for _, w := range p.workers {
		w.Terminate(reason)
	}
}

// drain prevents the start of new workers. Connections that wait still get a
// worker, because their clients may have sent requests. Then Drain asks every
// worker to finish its current requests and exit, and kills workers that it can't
// reach.
func (p *Pool) drain() {
	if p.draining {
		return
	}
	p.draining, p.exitRequestedAt = true, time.Now()
	p.askToFinish()
	p.endIfDone()
}

// askToFinish asks the workers of a draining pool to finish, once no connection
// waits for a worker that can take it. A connection must be in a worker's channel
// before the request to finish: a worker may exit when it has read that.
func (p *Pool) askToFinish() {
	if !p.draining || p.askedToFinish || len(p.waiting) > 0 && p.hasWorker() {
		return
	}
	p.askedToFinish = true
	p.dropWaiting(Stopping)
	for _, w := range p.workers {
		switch err := w.Channel.TrySend(new(work.Drain)); {
		case err == nil, errors.Is(err, os.ErrClosed):
		case errors.Is(err, ipc.ErrFull): // the worker is busy; if it never reads, it is killed because it does not answer a Ping
			go w.Channel.Send(new(work.Drain))
		default:
			w.Terminate("did not receive the request to finish")
		}
	}
}

// hasWorker reports whether a worker can take connections, now or when it has read
// its channel.
func (p *Pool) hasWorker() bool {
	for _, w := range p.workers {
		if w.usable() {
			return !p.gen.Replacing || p.SingleUse
		}
	}
	return false
}

// Retire lets the pool end: no new worker starts, and each worker exits after
// its last connection. Retire returns the connections that still wait, so that
// another pool can serve them.
func (p *Pool) Retire() []*Connection {
	if p.IsLeaving() {
		return nil
	}
	p.retired, p.exitRequestedAt = true, time.Now()
	for _, w := range p.workers {
		if !w.ready {
			w.Terminate("is no longer needed")
			continue
		}
		// If the channel is full, Send waits until the worker reads. If the
		// worker never reads, it is killed because it does not answer a Ping.
		go w.Channel.Send(new(work.Retire))
	}
	waiting := p.waiting.TakeAll()
	p.endIfDone()
	return waiting
}

// EndIdle kills workers that were asked to exit and have had no connection for
// longer than limit, but still run. Otherwise such a worker could continue to
// request connections to daemons, and prevent the start of other workers.
func (p *Pool) EndIdle(limit time.Duration) {
	if p.exitRequestedAt.IsZero() || time.Since(p.exitRequestedAt) < limit || time.Since(p.lastUsed) < limit {
		return
	}
	for _, w := range p.workers {
		if len(w.held) == 0 {
			w.Terminate(fmt.Sprintf("was asked to exit, has had no connection for %s, and still runs", limit))
		}
	}
}

// endRetired drains workers that were retired more than RetireLimit ago and
// still have connections. It kills them if they do not exit after that. Without
// this limit, a worker that never sends ConnectionDone would survive every
// reload. It would keep its channel to the keeper and its connections to the
// daemons of an old configuration.
func (p *Pool) endRetired() {
	elapsed := time.Since(p.exitRequestedAt)
	switch {
	case !p.retired:
	case p.draining && elapsed > p.Setup.Limits.Drain+process.ExitGrace:
		p.Kill("was retired and asked to finish, but still runs")
	case !p.draining && elapsed > p.RetireLimit:
		for _, w := range p.workers {
			p.logFailure(slog.LevelWarn, "retired worker asked to finish", "worker", w.Number, "pid", w.PID,
				"uid", p.identity.UID, "after", elapsed.Round(time.Second))
		}
		p.drain()
	}
}

// endIfDone marks the pool as ended if the pool starts no more workers and none
// of its workers still runs.
func (p *Pool) endIfDone() {
	if p.ended || p.running > 0 || !p.IsLeaving() {
		return
	}
	p.ended = true
	p.remove(p)
	p.gen.Release()
	if p.startErr != nil && p.unproved == 0 {
		p.started(p.startErr)
	}
	if p.OnEnd != nil {
		p.OnEnd()
	}
}

// logCounters makes the workers that are ready log their counters.
func (p *Pool) logCounters() {
	for _, w := range p.workers {
		if w.ready {
			w.LogCounters()
		}
	}
}
