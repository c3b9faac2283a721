package pool

import (
	"errors"
	"log/slog"
	"maps"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// output is a process that reads output for a worker. It starts when the worker
// needs it, and ends with the worker, or by itself when it has nothing to do. It must
// be used only in the loop.
type output struct {
	process  OutputProcess // nil: none has been started
	starting bool
	lastAt   time.Time // when a process was last asked for
}

// outputPause is the minimum time between two starts of processes that read
// output for a user and a worker. Without it, a captured worker could keep the
// machine busy with starts.
const outputPause = 2 * time.Second

// isOver reports whether o can be forgotten.
func (o *output) isOver(now time.Time) bool {
	return !o.starting && (o.process == nil || o.process.Exited()) && now.Sub(o.lastAt) >= outputPause
}

// askOutput starts a process that reads output for w, which gets a channel to
// it, or the reason why there is none.
func (p *Pool) askOutput(w *worker, m *work.AskOutput) error {
	now := time.Now()
	maps.DeleteFunc(w.outputs, func(_ uint64, o *output) bool { return o.isOver(now) })
	o := w.outputs[m.Client]
	switch {
	case p.gen.Output == nil:
		return errors.New("sent AskOutput while no output is read")
	case (m.Client != 0) != p.gen.TokenOutput || m.Client&1 != 0: // the parent would end this process (ipc.Vouch)
		return errors.New("sent AskOutput for a user whom it can't name")
	case !w.reports.Take(now, 1):
		return errTooOften("AskOutput")
	case o != nil && (o.starting || o.process != nil && !o.process.Exited()): // a channel may close before the process has exited
		p.refuseOutput(w, m.Client, "the process that reads output is about to exit")
		return nil
	case o != nil:
		p.refuseOutput(w, m.Client, "the process that reads output has just exited")
		return nil
	}
	client, uid := m.Client, m.UID
	if !p.gen.TokenOutput {
		uid = p.identity.UID
		// All connections of a worker with become_user have the same uid and gid, but a
		// new login may have more groups.
		for _, c := range w.held {
			client = max(client, c.Arrival)
		}
	}
	place := p.outputs.Empty(uid)
	if !place.Grow(1) {
		p.refuseOutput(w, m.Client, "too many processes read output")
		return nil
	}
	o = &output{starting: true, lastAt: now}
	w.outputs[m.Client] = o
	p.gen.Hold() // until the process has started; the worker needs the generation anyway
	go func() {
		process, err := p.gen.Output(client, Describe(w.Process, w.requests), w.Channel)
		p.Do(func() {
			p.gen.Release()
			o.starting = false
			switch {
			case err != nil:
				p.logFailure(slog.LevelWarn, "no process reads output", errs.LogAttrs(errs.HintOf(err), "uid", uid, "error", err)...)
				p.refuseOutput(w, m.Client, err.Error())
			case p.workers[w.Number] != w:
				go process.Stop()
			default:
				o.process = process
			}
		})
		if err == nil {
			process.Wait() // a file system that hangs may keep it from exiting
		}
		place.Release()
	}()
	return nil
}

func (p *Pool) refuseOutput(w *worker, client uint64, reason string) {
	if err := w.Channel.TrySend(&work.NoOutput{Client: client, Reason: ipc.TruncateReason(reason)}); errors.Is(err, ipc.ErrFull) {
		w.Terminate("did not read its channel")
	}
}

// stopOutputs ends the processes that read output for w.
func (w *worker) stopOutputs() {
	for _, o := range w.outputs {
		if o.process != nil {
			go o.process.Stop()
		}
	}
}
