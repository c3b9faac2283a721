package pool

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"schedrestd/gateway/dispatcher/process/fakeparent"
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// fakeOutputs starts processes that read output.
type fakeOutputs struct {
	mu      sync.Mutex
	err     error
	clients []uint64
	all     []*fakeOutputProcess
}

// A fakeOutputProcess exits when it is stopped, unless it hangs.
type fakeOutputProcess struct {
	once sync.Once
	done chan struct{}
}

func (f *fakeOutputProcess) exit()      { f.once.Do(func() { close(f.done) }) }
func (f *fakeOutputProcess) Stop()      { f.exit() }
func (f *fakeOutputProcess) Wait()      { <-f.done }
func (*fakeOutputProcess) User() uint32 { return fakeUID }

func (f *fakeOutputProcess) Exited() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

func (f *fakeOutputs) start(client uint64, _ *work.WorkerChannel, to *ipc.Channel) (OutputProcess, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.clients = append(f.clients, client); f.err != nil {
		return nil, f.err
	}
	p := &fakeOutputProcess{done: make(chan struct{})}
	f.all = append(f.all, p)
	return p, nil
}

func (f *fakeOutputs) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fakeOutputs) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.all)
}

// refusal returns the reason why w gets no process.
func refusal(t *testing.T, w *fakeparent.Process) string {
	t.Helper()
	for {
		m, err := w.Channel.Receive()
		must(t, err)
		if refused, ok := m.Message.(*work.NoOutput); ok {
			return refused.Reason
		}
	}
}

// TestOutputProcesses checks when a worker gets a process that reads output: one at
// a time, with a pause, for the newest of its connections, and until the worker exits.
func TestOutputProcesses(t *testing.T) {
	f := new(fakeOutputs)
	p, w := servingOne(t)
	p.sync(func() { p.gen.Output = f.start })
	p.connect()
	p.connect()
	p.takeConn(w)
	p.takeConn(w)
	var newest uint64
	p.sync(func() {
		for _, worker := range p.workers {
			for _, c := range worker.held {
				newest = max(newest, c.Arrival)
			}
		}
	})
	ask := func() { t.Helper(); must(t, w.Channel.Send(new(work.AskOutput))) }
	ask()
	await(t, "a process has started", func() bool { return f.count() == 1 })
	if f.clients[0] != newest {
		t.Errorf("it is for connection %d, want %d", f.clients[0], newest)
	}
	ask()
	if got := refusal(t, w); !strings.Contains(got, "about to exit") {
		t.Errorf("a second one: %q", got)
	}
	f.all[0].exit()
	ask()
	if got := refusal(t, w); !strings.Contains(got, "just exited") {
		t.Errorf("at once after the first: %q", got)
	}
	later := func() {
		p.sync(func() {
			for _, worker := range p.workers {
				worker.outputs[0].lastAt = time.Time{}
			}
		})
	}
	later()
	ask()
	await(t, "another one has started", func() bool { return f.count() == 2 })
	f.all[1].exit()
	f.fail(errors.New("no memory"))
	later()
	ask()
	if got := refusal(t, w); got != "no memory" {
		t.Errorf("it does not start: %q", got)
	}
	f.fail(nil)
	later()
	ask()
	await(t, "the last one has started", func() bool { return f.count() == 3 })
	w.Exit(0)
	await(t, "it ends with its worker", f.all[2].Exited)
}

// TestOutputOfTokens checks that a worker gets a process for each user for whom the
// keeper has vouched, and for no other.
func TestOutputOfTokens(t *testing.T) {
	f := new(fakeOutputs)
	p, w := servingOne(t)
	p.sync(func() { p.gen.Output, p.gen.TokenOutput = f.start, true })
	for i, client := range []uint64{4, 6} {
		must(t, w.Channel.Send(&work.AskOutput{Client: client, UID: 1000 + uint32(client)}))
		await(t, "a process has started", func() bool { return f.count() == i+1 })
	}
	if !slices.Equal(f.clients, []uint64{4, 6}) || p.outputs.Held(1004) != 1 || p.outputs.Held(1006) != 1 {
		t.Errorf("started for %v", f.clients)
	}
	must(t, w.Channel.Send(&work.AskOutput{Client: 4, UID: 1004}))
	if got := refusal(t, w); !strings.Contains(got, "about to exit") {
		t.Errorf("a second one: %q", got)
	}
	must(t, w.Channel.Send(new(work.AskOutput)))
	p.logged("for a user whom it can't name")
	if f.count() != 2 {
		t.Errorf("started for %v", f.clients)
	}
}

// TestNumberForCredentials checks that a worker is killed if it asks for a process that
// reads output with a number that is for one that gets credentials. The parent would
// end the dispatcher.
func TestNumberForCredentials(t *testing.T) {
	f := new(fakeOutputs)
	p, w := servingOne(t)
	p.sync(func() { p.gen.Output, p.gen.TokenOutput = f.start, true })
	must(t, w.Channel.Send(&work.AskOutput{Client: 5, UID: 1005}))
	p.logged("for a user whom it can't name")
	if f.count() != 0 {
		t.Errorf("started for %v", f.clients)
	}
}

// TestOutputIsOff checks that a worker is killed if it asks although no output is
// read.
func TestOutputIsOff(t *testing.T) {
	p, w := servingOne(t)
	must(t, w.Channel.Send(new(work.AskOutput)))
	p.logged("sent AskOutput while no output is read")
}

// TestTooManyQuestions checks that a worker whose reports are used up is killed if it
// asks for a process that it may have.
func TestTooManyQuestions(t *testing.T) {
	for name, m := range map[string]ipc.Message{"AskOutput": new(work.AskOutput), "AskCredential": &work.AskCredential{Client: 1, UID: fakeUID}} {
		f := new(fakeOutputs)
		p, w := servingOne(t)
		p.sync(func() {
			p.gen.Output = f.start
			p.gen.Credential = func(client uint64) (OutputProcess, error) { return f.start(client, nil, nil) }
			for _, worker := range p.workers {
				worker.reports = rate.New(limit.WorkerStages.Of(0, 0), time.Now())
			}
		})
		must(t, w.Channel.Send(m))
		p.logged("sent " + name + " too often")
		if f.count() != 0 {
			t.Errorf("%s: a process has started", name)
		}
	}
}

// TestHangingOutputProcesses checks that processes that can't exit take places of
// their user, so that there are never too many of them.
func TestHangingOutputProcesses(t *testing.T) {
	f := new(fakeOutputs)
	p, w := servingOne(t)
	p.sync(func() {
		p.gen.Output = func(client uint64, worker *work.WorkerChannel, to *ipc.Channel) (OutputProcess, error) {
			process, err := f.start(client, worker, to)
			return hanging{process}, err
		}
	})
	for i := range limit.OutputProcesses.Share {
		p.sync(func() {
			for _, worker := range p.workers {
				clear(worker.outputs) // as for the next worker
			}
		})
		must(t, w.Channel.Send(new(work.AskOutput)))
		await(t, "a process has started", func() bool { return f.count() == i+1 })
		await(t, "it is known", func() (known bool) {
			p.sync(func() {
				for _, worker := range p.workers {
					known = worker.outputs[0] != nil && worker.outputs[0].process != nil
				}
			})
			return known
		})
	}
	p.sync(func() {
		for _, worker := range p.workers {
			clear(worker.outputs)
		}
	})
	must(t, w.Channel.Send(new(work.AskOutput)))
	if got := refusal(t, w); !strings.Contains(got, "too many processes") {
		t.Errorf("%q", got)
	}
	for _, process := range f.all {
		process.exit()
	}
	await(t, "the places are free", func() bool { return p.outputs.Held(7) == 0 })
}

// hanging is a process that does not exit when it is stopped.
type hanging struct{ OutputProcess }

func (hanging) Stop() {}
