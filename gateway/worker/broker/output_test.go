package broker

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"schedrestd/auth"
	"schedrestd/handlers"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// fakeOutput is the dispatcher, and the process that reads output.
type fakeOutput struct {
	t      *testing.T
	o      *Outputs
	refuse string // why no process starts; "" if one does
	answer func(*query.ReadOutput) *query.OutputPart

	mu     sync.Mutex
	starts int
	asked  []uint64 // the numbers of the users
	ends   []*ipc.Channel
}

func newFakeOutput(t *testing.T, answer func(*query.ReadOutput) *query.OutputPart) *fakeOutput {
	f := &fakeOutput{t: t, answer: answer}
	f.o = newOutputs(1000, func(m ipc.Message, _ ...int) error {
		q, ok := m.(*work.AskOutput)
		if !ok {
			t.Errorf("sent %T", m)
		}
		go f.start(q.Client)
		return nil
	})
	return f
}

func (f *fakeOutput) start(client uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.starts++
	f.asked = append(f.asked, client)
	if f.refuse != "" {
		f.o.refuse(&work.NoOutput{Client: client, Reason: f.refuse})
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
	if err := f.o.connect(client, fd); err != nil {
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
		got, err := f.o.own.ReadOutput(t.Context(), handlers.OutputPart{Path: path, Offset: 7, Max: 100})
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
		_, err := f.o.own.ReadOutput(t.Context(), handlers.OutputPart{Path: "/x", Max: 1})
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
		{query.OutputNoGroups, 0, errs.Denied, "may not read"},
		{query.OutputNotRegular, 0, errs.Denied, "regular file"},
		{query.OutputForeign, 0, errs.Denied, "another user"},
		{query.OutputUnsafe, 0, errs.Denied, "link of another user"},
		{query.OutputFailed, syscall.EAGAIN, errs.Unavailable, "too many"},
		{query.OutputFailed, syscall.ESTALE, errs.Unavailable, "stale"},
		{query.OutputFailed, syscall.ENAMETOOLONG, errs.NotFound, "name too long"},
		{query.OutputFailed, syscall.ELOOP, errs.NotFound, "symbolic links"},
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
		if _, err := f.o.own.ReadOutput(ctx, handlers.OutputPart{Path: "/x"}); err == nil {
			t.Error("no error")
		}
		cancel()
	}
	if f.starts != 1 {
		t.Errorf("%d processes", f.starts)
	}
}

// TestOutputOfTokens checks that each user has a process of its own, which is asked for
// with the newest number that the keeper has given, and that a process that was given
// up is closed.
func TestOutputOfTokens(t *testing.T) {
	f := newFakeOutput(t, func(q *query.ReadOutput) *query.OutputPart { return &query.OutputPart{ID: q.ID, Data: []byte(q.Path)} })
	read := func(o *Output, path string) {
		t.Helper()
		if got, err := o.ReadOutput(t.Context(), handlers.OutputPart{Path: path, Max: 100}); err != nil || string(got.Data) != path {
			t.Errorf("%s: %+v, %v", path, got, err)
		}
	}
	alice, bob := f.o.of(1001, 7), f.o.of(1002, 8)
	if alice.Owner() != 1001 || bob.Owner() != 1002 {
		t.Error("they have other users")
	}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() { read(alice, "/a") })
		wg.Go(func() { read(bob, "/b") })
	}
	wg.Wait()
	if slices.Sort(f.asked); !slices.Equal(f.asked, []uint64{7, 8}) {
		t.Errorf("asked for %v", f.asked)
	}
	for _, end := range f.ends {
		end.Close()
	}
	if again := f.o.of(1001, 9); again != alice {
		t.Error("the user has two processes")
	}
	read(alice, "/c")
	if last := f.asked[len(f.asked)-1]; last != 9 {
		t.Errorf("asked for %d", last)
	}
	end, fd, err := ipc.Pair(ipc.Output, ipc.Worker)
	must(t, err)
	defer end.Close()
	must(t, f.o.connect(99, fd))
	if _, err := end.Receive(); err != io.EOF {
		t.Errorf("a process for which no question waits: %v", err)
	}
	for uid := range uint32(2 * maxOutputUsers) {
		f.o.of(5000+uid, 1)
	}
	if n := len(f.o.users); n > maxOutputUsers+2 {
		t.Errorf("%d users are remembered", n)
	}
}

// TestOutputIsVouchedForAgain checks that a request that takes long asks the keeper
// again, and ends when the token is no longer accepted, but not because the keeper does
// not answer for a while.
func TestOutputIsVouchedForAgain(t *testing.T) {
	f := newFakeOutput(t, func(q *query.ReadOutput) *query.OutputPart { return &query.OutputPart{ID: q.ID} })
	now := time.Now()
	f.o.now = func() time.Time { return now }
	k := NewKeeper()
	f.o.keeper = k
	if _, _, err := k.vouchFor(t.Context(), auth.Signature{}, false, ""); errs.KindOf(err) != errs.Denied || !strings.Contains(errs.HintOf(err), "jwt_key=") {
		t.Errorf("without a keeper: %v", err)
	}
	end, fd, err := ipc.Pair(ipc.Keeper, ipc.Worker)
	must(t, err)
	defer end.Close()
	must(t, k.Connect(fd))
	var asked atomic.Uint64
	var verdict atomic.Uint32
	verdict.Store(uint32(query.Genuine))
	go func() {
		for {
			m, err := end.Receive()
			if err != nil {
				return
			}
			q := m.Message.(*query.VouchFor)
			a := &query.VouchedFor{ID: q.ID, Verdict: query.Verdict(verdict.Load())}
			if a.Verdict == query.Genuine {
				a.Client, a.UID = asked.Add(1), 1001
			}
			_ = end.Send(a)
		}
	}()
	token, err := auth.FromRequest(&http.Request{Header: http.Header{"X-Sched-User-Token": {"eyJhbGciOiJIUzI1NiJ9.eyJzdW4iOiJhbGljZSIsImlhdCI6MTcwMDAwMDAwMCwiZXhwIjo0MTAyNDQ0ODAwfQ." + strings.Repeat("A", 43)}}}, auth.Options{JWT: true})
	must(t, err)
	files, err := f.o.Of(t.Context(), token)
	must(t, err)
	read := func(after time.Duration, want uint64) error {
		t.Helper()
		now = now.Add(after)
		_, err := files.ReadOutput(t.Context(), handlers.OutputPart{Path: "/x", Max: 1})
		if n := asked.Load(); n != want {
			t.Errorf("after %v the keeper has vouched %d times, want %d", after, n, want)
		}
		return err
	}
	must(t, read(0, 1))
	must(t, read(vouchInterval-time.Second, 1))
	must(t, read(time.Second, 2))
	verdict.Store(uint32(query.NoVerdict))
	must(t, read(vouchInterval, 2))
	verdict.Store(uint32(query.Outdated))
	if err := read(0, 2); errs.KindOf(err) != errs.Denied || !strings.Contains(errs.HintOf(err), "jwt_key=") {
		t.Errorf("a token for which the keeper has no key: %v", err)
	}
	verdict.Store(uint32(query.Revoked))
	if err := read(time.Second, 2); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("a token that is revoked: %v", err)
	}
}
