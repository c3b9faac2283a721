package pool

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"schedrestd/gateway/dispatcher/admission"
	"schedrestd/gateway/dispatcher/process"
	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
	"schedrestd/security/sandbox"
)

// start starts the first worker in each place of the pool. If one of them does
// not become ready, the pool ends, because the next worker would also fail. A
// lazy pool starts a worker only when a connection waits.
func (p *Pool) start(started func(error)) {
	p.started, p.unproved = started, p.Workers
	for i := range p.Workers {
		p.fill(&place{number: i})
	}
	if p.Lazy {
		started(nil)
	}
}

// fill starts the next worker in a place of the pool, if a worker is needed.
func (p *Pool) fill(at *place) {
	switch {
	case p.IsLeaving():
	case p.Lazy && len(p.waiting) == 0 && p.SingleUse && p.assigned > 0:
		p.drain()
	case p.Lazy && len(p.waiting) == 0:
		p.vacant = append(p.vacant, at)
	default:
		p.running++
		spec := workerSpec{client: p.waitingClient(), threads: p.threads(at.number), requests: p.requests(at.number),
			quota: p.Quota.Of(p.identity.UID, at.number)}
		go p.runWorker(at, spec)
	}
}

// waitingClient returns the number of the first waiting connection of a lazy
// pool. The next worker of the pool runs as the user of that connection. For
// any other pool, waitingClient returns 0, which stands for the configured
// user.
func (p *Pool) waitingClient() uint64 {
	if p.Lazy {
		return p.waiting[0].Arrival
	}
	return 0
}

// runWorker starts a worker, passes its messages to the loop, and reaps it. It
// blocks until the worker has exited.
func (p *Pool) runWorker(at *place, spec workerSpec) {
	w, err := p.spawnWorker(p.gen, spec)
	if err != nil {
		p.Do(func() { p.recordStartFailure(at, err) })
		return
	}
	w.place = at
	p.Do(func() { p.join(w) })
	cause := p.receive(w)
	timeout := process.ExitGrace
	if !errors.Is(cause, io.EOF) {
		timeout = 0
	}
	var d departure
	_ = p.Call(func() error { d = p.removeWorker(w, cause); return nil })
	d.status = w.Reap(timeout)
	p.Do(func() { p.reap(w, d) })
}

// receive handles the messages of w. It returns when the channel ends or w
// breaks the protocol. The returned error says which.
func (p *Pool) receive(w *worker) error {
	for {
		m, err := w.Channel.Receive()
		if err != nil {
			return err
		}
		done := false
		if _, ready := m.Message.(*ipc.Ready); ready {
			err = p.gen.Provision(Describe(w.Process, w.requests), w.Channel)
		} else {
			done, err = w.dialer.Handle(m.Message)
		}
		if err == nil && !done {
			err = p.Call(func() error { return p.handle(w, m.Message) })
		}
		if err != nil {
			return err
		}
	}
}

// join adds a started worker to the pool's workers.
func (p *Pool) join(w *worker) {
	p.Slots.counts.started++
	p.workers[w.Number] = w
	if p.IsLeaving() { // the pool began to end while the process was being started
		w.Terminate("is no longer needed")
	}
	w.startTimer = p.After(p.StartLimit, func() {
		if p.workers[w.Number] == w && !w.ready {
			w.Terminate(fmt.Sprintf("was not ready within %s", p.StartLimit))
		}
	})
}

// handle handles a message from w. An error means that w must be killed.
func (p *Pool) handle(w *worker, m ipc.Message) error {
	switch m := m.(type) {
	case *ipc.Ready:
		w.sandbox = (*sandbox.Layers)(m)
		return nil
	case *ipc.KeysResult:
		if w.sandbox == nil || w.ready {
			return errors.New("sent KeysResult for keys that it was not given")
		}
		if !m.OK {
			return errs.New(errs.Denied, "a worker cannot use the key set of RS256 tokens: %s", printable.Text(m.Reason)).
				WithHint("the daemons refuse this file, too; their log has the command that fixes it")
		}
		p.setReady(w)
		return nil
	case *ipc.Refused:
		return errs.New(errs.Denied, "a worker cannot serve: %s", printable.Text(m.Reason))
	case *work.ConnectionTaken:
		return p.taken(w, m.ID)
	case *work.ConnectionDone:
		return p.release(w, m.ID)
	case *work.Progress:
		return p.progress(w, m)
	case *work.Offence:
		return p.offence(w, m)
	case *query.Counts:
		return p.addCounts(w, m)
	case *work.AskOutput:
		return p.askOutput(w, m)
	case *work.AskCredential:
		return p.askCredential(w, m)
	case *ipc.Pong:
		if err := w.liveness.HandlePong(m.Number); err != nil {
			return err
		}
		p.endExcuse(w)
		return nil
	}
	return ipc.Unhandled(m)
}

func (p *Pool) setReady(w *worker) {
	w.ready = true
	w.startTimer.Stop()
	p.serveWaiting()
	p.logRoutine("worker ready", "worker", w.Number, "pid", w.PID, "uid", p.identity.UID, "gid", p.identity.GID,
		"sandbox", w.sandbox.String(), "took", time.Since(w.Started).Round(10*time.Microsecond))
	p.prove(w.place, nil)
}

// prove records whether the first worker in a place of the pool became ready.
// err is nil, or the reason why it did not.
func (p *Pool) prove(at *place, err error) {
	if p.Lazy || at.proved {
		return
	}
	at.proved = true
	p.startErr = errors.Join(p.startErr, err)
	if p.unproved--; p.unproved > 0 {
		return
	}
	if p.startErr == nil {
		p.started(nil)
		return
	}
	p.drain()
	p.Kill("the start failed")
}

// A departure describes why and how a worker left its pool.
type departure struct {
	cause          error             // why its channel is no longer read: the error that receive returned
	drained        bool              // it was asked to exit
	suspects       []*admission.Conn // connections whose clients may be the cause
	lost, requeued int               // how many connections were closed, and how many another worker will get
	status         string            // exit status of the process
}

// removeWorker removes a worker from the pool, and takes back its connections.
func (p *Pool) removeWorker(w *worker, cause error) departure {
	w.startTimer.Stop()
	w.stopOutputs()
	delete(p.workers, w.Number)
	if w.violation != nil {
		cause = w.violation
	}
	d := departure{cause: cause, drained: p.IsLeaving() || w.replaced, suspects: w.suspects()}
	d.lost, d.requeued = p.reclaimConns(w)
	return d
}

// reap logs how a worker exited, and starts the next worker in its place.
func (p *Pool) reap(w *worker, d departure) {
	p.gen.Audit.WorkerExited(w.Number, d.status)
	p.prove(w.place, p.reportExit(w, d))
	p.refill(w.place, w)
}

// reportExit logs how a worker exited. If clients may be the cause, it counts
// an offence for each of them. It returns nil if the worker had finished its
// work and exited because it was asked to. Otherwise it returns the reason for
// the exit. If the first worker in a place exits before it is ready, this
// reason explains why the start failed.
func (p *Pool) reportExit(w *worker, d departure) error {
	closed, counts := errors.Is(d.cause, io.EOF), &p.Slots.counts
	attrs := []any{"worker", w.Number, "pid", w.PID, "uid", p.identity.UID,
		"connections_lost", d.lost, "connections_retried", d.requeued, "status", d.status}
	blame := func() { p.Slots.Crash(time.Now(), d.suspects) }
	switch {
	case w.ForbiddenCall:
		counts.violated++
		blame()
		if !closed {
			attrs = append(attrs, "because", d.cause)
		}
		p.alarm(process.WorkerViolation, attrs...)
		return errs.New(errs.Internal, "%s", process.WorkerViolation).
			WithHint("on an untested kernel, set SCHEDRESTD_SECURITY=audit_confinement: the gateway then serves, and the kernel logs the system call")
	case w.EndReason != "":
		counts.killed++
		p.logFailure(slog.LevelWarn, "worker terminated", append(attrs, "because", w.EndReason)...)
		return errs.New(errs.Unavailable, "a worker was terminated: %s", w.EndReason)
	case !closed:
		counts.killed++
		blame()
		attrs = append(attrs, "because", d.cause)
		if errs.KindOf(d.cause) == errs.Denied { // a worker that refuses to serve does not break the protocol
			p.logFailure(slog.LevelError, "worker killed", attrs...)
		} else {
			p.alarm("worker killed", attrs...)
		}
		return d.cause
	case d.drained && (d.lost == 0 || w.replaced):
		counts.done++
		p.logRoutine("worker exited", attrs...)
		return nil
	}
	counts.died++
	if w.Crashed {
		blame()
	}
	p.logFailure(slog.LevelError, "worker exited unexpectedly", attrs...)
	return errs.New(errs.Internal, "a worker exited before it was ready: %s", d.status).WithHint("its last messages are in the log above")
}

// recordStartFailure records that a worker could not be started.
func (p *Pool) recordStartFailure(at *place, err error) {
	p.prove(at, err)
	if errs.KindOf(err) == errs.Internal {
		attrs := errs.LogAttrs(errs.HintOf(err), "uid", p.identity.UID, "error", err)
		p.logFailure(slog.LevelError, "worker not started", attrs...)
	}
	p.refill(at, nil)
}

// refill starts the next worker in a place of the pool. w is the worker that
// has exited, or nil if no worker could be started. The pause before the start
// grows with the number of successive failures. A worker has failed if it could
// not be started, or if it exited before it had finished a connection or got a
// second one. Without the pause, a request that crashes workers could keep the
// machine busy starting new ones.
func (p *Pool) refill(at *place, w *worker) {
	p.running--
	if w != nil && w.replaced { // another worker already has the place
		p.notifyIdle()
		p.endIfDone()
		return
	}
	if w != nil && (w.finished > 0 || w.assigned > 1) {
		at.failures = 0
	} else {
		at.failures++
	}
	if p.Lazy && (w == nil || !w.ready) {
		p.setBackingOff()
	}
	if wait := Backoff(at.failures); wait > 0 {
		p.After(wait, func() { p.backingOff = false; p.notifyIdle(); p.fill(at) })
	} else {
		p.fill(at)
	}
	p.notifyIdle()
	p.endIfDone()
}

// setBackingOff records that the next worker starts only after a pause. It
// turns away the connections that wait for a worker.
func (p *Pool) setBackingOff() {
	p.backingOff = true
	p.dropWaiting("its worker could not be started")
	if p.SingleUse {
		p.drain()
	}
}
