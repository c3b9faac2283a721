package broker

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"schedrestd/handlers"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// fakeOutput is the dispatcher, and the process that reads output.
type fakeOutput struct {
	t      *testing.T
	o      *Output
	refuse string // why no process starts; "" if one does
	answer func(*query.ReadOutput) *query.OutputPart

	mu     sync.Mutex
	starts int
	ends   []*ipc.Channel
}

func newFakeOutput(t *testing.T, answer func(*query.ReadOutput) *query.OutputPart) *fakeOutput {
	f := &fakeOutput{t: t, answer: answer}
	f.o = newOutput(1000, func(m ipc.Message, _ ...int) error {
		if _, ok := m.(*work.AskOutput); !ok {
			t.Errorf("sent %T", m)
		}
		go f.start()
		return nil
	})
	return f
}

func (f *fakeOutput) start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.starts++
	if f.refuse != "" {
		f.o.refuse(&work.NoOutput{Reason: f.refuse})
		return
	}
	c, fd, err := ipc.Pair(ipc.Output, ipc.Worker)
	if err != nil {
		f.t.Error(err)
		return
	}
	f.t.Cleanup(func() { c.Close() })
	f.ends = append(f.ends, c)
	go func() {
		for {
			m, err := c.Receive()
			if err != nil {
				return
			}
			if part := f.answer(m.Message.(*query.ReadOutput)); part != nil {
				_ = c.Send(part)
			}
		}
	}()
	if err := f.o.connect(fd); err != nil {
		f.t.Error(err)
	}
}

// TestOutput checks that the process is started once, at the first question, that
// each question gets its own answer, and that another process takes the place of one
// that has exited.
func TestOutput(t *testing.T) {
	f := newFakeOutput(t, func(q *query.ReadOutput) *query.OutputPart {
		return &query.OutputPart{ID: q.ID, Device: 1, Inode: 2, Size: 100, Offset: q.Offset, Data: []byte(q.Path)}
	})
	ask := func(path string) {
		t.Helper()
		got, err := f.o.ReadOutput(t.Context(), handlers.OutputPart{Path: path, Offset: 7, Max: 100})
		if err != nil || string(got.Data) != path || got.Offset != 7 || got.Size != 100 || got.File != (handlers.OutputFile{Device: 1, Inode: 2}) {
			t.Errorf("%s: %+v, %v", path, got, err)
		}
	}
	var wg sync.WaitGroup
	for _, path := range strings.Fields("/a /b /c /d /e /f") {
		wg.Go(func() { ask(path) })
	}
	wg.Wait()
	if f.starts != 1 {
		t.Errorf("%d processes", f.starts)
	}
	f.ends[0].Close()
	ask("/g")
	if f.starts != 2 {
		t.Errorf("%d processes", f.starts)
	}
}

// TestOutputIsRefused checks the errors for a process that does not start, and for
// its answers.
func TestOutputIsRefused(t *testing.T) {
	var next atomic.Pointer[query.OutputPart]
	f := newFakeOutput(t, func(q *query.ReadOutput) *query.OutputPart {
		answer := *next.Load()
		answer.ID = q.ID
		return &answer
	})
	ask := func() error {
		_, err := f.o.ReadOutput(t.Context(), handlers.OutputPart{Path: "/x", Max: 1})
		return err
	}
	f.refuse = "no memory"
	if err := ask(); errs.KindOf(err) != errs.Unavailable || !strings.Contains(err.Error(), "no memory") {
		t.Errorf("%v", err)
	}
	f.refuse = ""
	for _, tt := range []struct {
		state query.OutputState
		errno syscall.Errno
		kind  errs.Kind
		want  string
	}{
		{query.OutputMissing, 0, errs.NotFound, "no such file"},
		{query.OutputDenied, 0, errs.Denied, "may not read"},
		{query.OutputNotRegular, 0, errs.Denied, "regular file"},
		{query.OutputForeign, 0, errs.Denied, "another user"},
		{query.OutputUnsafe, 0, errs.Denied, "link of another user"},
		{query.OutputFailed, syscall.EAGAIN, errs.Unavailable, "too many"},
		{query.OutputFailed, syscall.ESTALE, errs.Unavailable, "stale"},
	} {
		next.Store(&query.OutputPart{State: tt.state, Errno: uint32(tt.errno)})
		if err := ask(); errs.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.state, err)
		}
	}
}

// TestOutputHangs checks that a question that is not answered ends with the client,
// and that its place is free for others.
func TestOutputHangs(t *testing.T) {
	f := newFakeOutput(t, func(*query.ReadOutput) *query.OutputPart { return nil })
	for range 100 { // more than are asked at once
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		if _, err := f.o.ReadOutput(ctx, handlers.OutputPart{Path: "/x"}); err == nil {
			t.Error("no error")
		}
		cancel()
	}
	if f.starts != 1 {
		t.Errorf("%d processes", f.starts)
	}
}
