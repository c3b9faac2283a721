package pool

import (
	"errors"
	"log/slog"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// output is a worker's process that reads output. It starts when the worker
// needs it, and ends with the worker. It must be used only in the loop.
type output struct {
	process  OutputProcess // nil: none has been started
	starting bool
	lastAt   time.Time // when a process was last asked for
}

// outputPause is the minimum time between two starts of processes that read
// output for a worker. Without it, a captured worker could keep the machine busy
// with starts.
const outputPause = 2 * time.Second

// askOutput starts a process that reads output for w, which gets a channel to
// it, or the reason why there is none.
func (p *Pool) askOutput(w *worker) error {
	switch {
	case p.gen.Output == nil:
		return errors.New("sent AskOutput while no output is read")
	case !w.reports.Take(time.Now(), 1):
		return errTooOften("AskOutput")
	case w.output.starting, w.output.process != nil && !w.output.process.Exited(): // a channel may close before the process has exited
		p.refuseOutput(w, "the process that reads output is about to exit")
		return nil
	case time.Since(w.output.lastAt) < outputPause:
		p.refuseOutput(w, "the process that reads output has just exited")
		return nil
	}
	place := p.outputs.Empty(p.identity.UID)
	if !place.Grow(1) {
		p.refuseOutput(w, "too many processes read output")
		return nil
	}
	w.output.starting, w.output.lastAt = true, time.Now()
	// All connections of a worker with become_user have the same uid and gid, but a
	// new login may have more groups.
	var client uint64
	for _, c := range w.held {
		client = max(client, c.Arrival)
	}
	p.gen.Hold() // until the process has started; the worker needs the generation anyway
	go func() {
		process, err := p.gen.Output(client, Describe(w.Process, w.requests), w.Channel)
		p.Do(func() {
			p.gen.Release()
			w.output.starting, w.output.process = false, process
			switch {
			case err != nil:
				w.output.process = nil
				p.logFailure(slog.LevelWarn, "no process reads output", errs.LogAttrs(errs.HintOf(err), "uid", p.identity.UID, "error", err)...)
				p.refuseOutput(w, err.Error())
			case p.workers[w.Number] != w:
				w.output.stop()
			}
		})
		if err == nil {
			process.Wait() // a file system that hangs may keep it from exiting
		}
		place.Release()
	}()
	return nil
}

func (p *Pool) refuseOutput(w *worker, reason string) {
	if err := w.Channel.TrySend(&work.NoOutput{Reason: ipc.TruncateReason(reason)}); errors.Is(err, ipc.ErrFull) {
		w.Terminate("did not read its channel")
	}
}

// stop ends the process.
func (o *output) stop() {
	if o.process != nil {
		go o.process.Stop()
	}
}
