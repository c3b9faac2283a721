package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/admission"
	"schedrestd/privsep/relay"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
)

// live starts a worker, passes its messages to the loop, and reaps it. It is a goroutine of the worker's own, which
// blocks; everything that it passes is handled by the loop.
func (p *Pool) live(at *place, to post) {
	w, err := p.spawnWorker(p.Config, to)
	if err != nil {
		p.Do(func() { p.unborn(at, err) })
		return
	}
	w.place = at
	p.Do(func() { p.join(w) })
	why := p.receive(w)
	patience := spawn.LastWords
	if !errors.Is(why, io.EOF) {
		patience = 0
	}
	var d departure
	_ = p.Call(func() error { d = p.leave(w, why); return nil })
	d.status = w.Reap(patience)
	p.Do(func() { p.bury(w, d) })
}

// receive returns when the channel of w has ended, or why w has to end: it broke the protocol, or sent a message
// about what is not its own.
func (p *Pool) receive(w *worker) error {
	for {
		m, err := w.Channel.Receive()
		if err != nil {
			return err
		}
		done := false
		if _, ready := m.Message.(*ipc.Ready); ready {
			err = p.gen.Greet(Describe(w.Process, w.requests), w.Channel)
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

// join puts a worker that was started on the list.
func (p *Pool) join(w *worker) {
	p.Slots.counts.born++
	p.workers[w.Number] = w
	if p.IsEnding() { // it began while the process started
		w.Condemn("it is not needed any more")
	}
	w.late = p.After(p.StartLimit, func() {
		if p.workers[w.Number] == w && !w.ready {
			w.Condemn(fmt.Sprintf("it was not ready within %s", p.StartLimit))
		}
	})
}

// handle handles a message of w's. An error ends w.
func (p *Pool) handle(w *worker, m ipc.Message) error {
	switch m := m.(type) {
	case *ipc.Ready:
		p.setReady(w, security.Sealed(*m))
		return nil
	case *ipc.Refused:
		return errs.New(errs.Denied, "a worker refuses to serve: %s", relay.Printable(m.Reason))
	case *ipc.Taken:
		return p.taken(w, m.ID)
	case *ipc.Done:
		return p.release(w, m.ID)
	case *ipc.Progress:
		return p.progress(w, m)
	case *ipc.Offence:
		return p.offence(w, m)
	case *ipc.Pong:
		return w.liveness.Answered(m.Number)
	}
	return ipc.Unheard(m)
}

func (p *Pool) setReady(w *worker, sealed security.Sealed) {
	w.ready = true
	w.late.Stop()
	p.dequeue()
	p.mention("worker is ready", "worker", w.Number, "pid", w.PID, "uid", p.who.UID, "gid", p.who.GID, "sealed", sealed.String(),
		"took", time.Since(w.Started).Round(10*time.Microsecond))
	p.prove(w.place, nil)
}

// departure is how a worker left its pool.
type departure struct {
	why         error             // its channel is no longer read
	drained     bool              // the pool was ending
	suspects    []*admission.Conn // whose clients may be the cause
	lost, again int               // connections that ended, and that another worker gets
	status      string            // of the process
}

// leave takes a worker off the list, and frees the slots of what it held.
func (p *Pool) leave(w *worker, why error) departure {
	w.late.Stop()
	delete(p.workers, w.Number)
	if w.breach != nil {
		why = w.breach
	}
	d := departure{why: why, drained: p.IsEnding(), suspects: w.suspects()}
	d.lost, d.again = p.orphans(w)
	return d
}

// bury logs how a worker ended, and has the next one started.
func (p *Pool) bury(w *worker, d departure) {
	p.gen.Audit.Exited(w.Number, d.status)
	p.prove(w.place, p.judge(w, d))
	p.vacate(w.place, w)
}

// judge logs how a worker ended, charges those who may have caused that, and returns why it does not
// serve; nil when it was done.
func (p *Pool) judge(w *worker, d departure) error {
	closed, counts := errors.Is(d.why, io.EOF), &p.Slots.counts
	attrs := []any{"worker", w.Number, "pid", w.PID, "uid", p.who.UID, "connections_lost", d.lost, "handed_again", d.again, "status", d.status}
	blame := func() { p.Slots.Crash(time.Now(), d.suspects) }
	switch {
	case w.Caged:
		counts.caged++
		blame()
		if !closed {
			attrs = append(attrs, "because", d.why)
		}
		p.alarm(spawn.WorkerCaged, attrs...)
		return errs.New(errs.Internal, "%s", spawn.WorkerCaged).
			WithHint("on a kernel that nobody has tried: SCHEDRESTD_SECURITY=audit_confinement serves, and the kernel's log has the system call")
	case w.Ending != "":
		counts.killed++
		p.complain(slog.LevelWarn, "worker was ended", append(attrs, "because", w.Ending)...)
		return errs.New(errs.Unavailable, "a worker was ended: %s", w.Ending)
	case !closed:
		counts.killed++
		blame()
		attrs = append(attrs, "because", d.why)
		if errs.KindOf(d.why) == errs.Denied { // it refuses to serve, which is no breach
			p.complain(slog.LevelError, "worker was killed", attrs...)
		} else {
			p.alarm("worker was killed", attrs...)
		}
		return d.why
	case d.drained && d.lost == 0:
		counts.done++
		p.mention("worker is done", attrs...)
		return nil
	}
	counts.died++
	if w.Crashed {
		blame()
	}
	p.complain(slog.LevelError, "worker died", attrs...)
	return errs.New(errs.Internal, "a worker died before it was ready: %s", d.status).WithHint("its last words are in the log above")
}

// unborn notes that a worker could not be started.
func (p *Pool) unborn(at *place, err error) {
	p.prove(at, err)
	if errs.KindOf(err) == errs.Internal {
		p.complain(slog.LevelError, "a worker can't be started", errs.LogAttrs(errs.HintOf(err), "uid", p.who.UID, "error", err)...)
	}
	p.vacate(at, nil)
}

// complain logs that a worker ended badly, or could not start. A user at the limit of processes, or one
// who kills their own workers, decides how often that is.
func (p *Pool) complain(level slog.Level, msg string, attrs ...any) {
	if p.lost != nil {
		n, ok := p.lost.add()
		if !ok {
			return
		}
		attrs = append(attrs, "workers_lost_so_far", n)
	}
	p.Log.Log(context.Background(), level, msg, attrs...)
}

// alarm logs what no worker does unless an attacker controls it. It is never limited, since others could hide it:
// each costs a process, and the clients that the worker was answering a penalty.
func (p *Pool) alarm(msg string, attrs ...any) {
	p.Log.Error(msg, append(attrs, "hint", spawn.CaptureHint)...)
}

// mention logs what happens to every worker; their numbers show what was left out. With one for each
// connection it is no news.
func (p *Pool) mention(msg string, attrs ...any) {
	if p.Once {
		p.Log.Debug(msg, attrs...)
		return
	}
	if p.routine != nil {
		if _, ok := p.routine.add(); !ok {
			return
		}
	}
	p.Log.Info(msg, attrs...)
}
