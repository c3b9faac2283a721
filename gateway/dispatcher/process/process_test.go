package process_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/dispatcher/process"
	"schedrestd/gateway/dispatcher/process/fakeparent"
	"schedrestd/gateway/dispatcher/relay"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// output is a buffer that several goroutines may use.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func newParent(t *testing.T) (*fakeparent.Parent, *output) {
	out := new(output)
	return fakeparent.New(t, relay.Text(out)), out
}

// start starts a process with the given role.
func start(t *testing.T, parent *fakeparent.Parent, role ipc.Role) (*process.Process, *fakeparent.Process) {
	t.Helper()
	p, err := parent.Starter.Start(ipc.StartProcess{Role: role, Threads: 1}, relay.NewQuota(100, 100))
	if err != nil {
		t.Fatal(err)
	}
	return p, parent.Next()
}

// TestStart checks that concurrent requests for processes are sent in the order
// of their numbers, and that each request gets its own process or error.
func TestStart(t *testing.T) {
	parent, _ := newParent(t)
	const n = 50
	started := make(chan *process.Process)
	for i := range n {
		go func() {
			p, err := parent.Starter.Start(ipc.StartProcess{Role: ipc.Worker, Requests: uint32(i), Threads: 1}, relay.NewQuota(1, 1))
			if err != nil {
				t.Error(err)
			}
			started <- p
		}()
	}
	byNumber := map[uint32]*process.Process{}
	for range n {
		p := <-started
		byNumber[p.Number] = p
	}
	for i := range uint32(n) {
		c := parent.Next()
		p := byNumber[c.Number]
		if c.Number != i+1 || p == nil || p.PID != int(c.PID) || p.Identity.UID != 7 || p.Identity.GID != 8 {
			t.Errorf("request %d is for process %d, which became %+v", i+1, c.Number, p)
		}
		c.Ready()
		if m, err := p.Channel.Receive(); err != nil {
			t.Errorf("process %d: %v %v", c.Number, m, err)
		}
	}
	parent.Refuse(errs.New(errs.Unavailable, "no process left").WithHint("raise the limit"))
	_, err := parent.Starter.Start(ipc.StartProcess{Role: ipc.Worker, Threads: 1}, nil)
	if errs.KindOf(err) != errs.Unavailable || err.Error() != "no process left" || errs.HintOf(err) != "raise the limit" {
		t.Errorf("a refused start: %v, %q", err, errs.HintOf(err))
	}
}

// TestExit checks what Reap returns, and what the process records, for each way
// in which a process can exit.
func TestExit(t *testing.T) {
	for _, tt := range []struct {
		name               string
		exit               func(*process.Process, *fakeparent.Process)
		status             string
		forbidden, crashed bool
		reason             string
	}{
		{"by itself", func(_ *process.Process, c *fakeparent.Process) { c.Exit(fakeparent.Exited(0)) }, "exit status 0", false, false, ""},
		{"a panic", func(_ *process.Process, c *fakeparent.Process) { c.Exit(fakeparent.Exited(2)) }, "exit status 2", false, true, ""},
		{"a forbidden call", func(_ *process.Process, c *fakeparent.Process) { c.Exit(unix.WaitStatus(unix.SIGSYS)) }, "killed by signal 31 (bad system call)", true, true, ""},
		{"killed by the administrator", func(_ *process.Process, c *fakeparent.Process) { c.Exit(unix.WaitStatus(unix.SIGKILL)) }, "killed by signal 9 (killed)", false, false, ""},
		{"terminated twice", func(p *process.Process, _ *fakeparent.Process) { p.Terminate("first"); p.Terminate("second") }, "killed by signal 9 (killed)", false, false, "first"},
		{"killed", func(p *process.Process, _ *fakeparent.Process) { p.Kill() }, "killed by signal 9 (killed)", false, false, ""},
		{"too slow", func(*process.Process, *fakeparent.Process) {}, "killed by signal 9 (killed)", false, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			parent, _ := newParent(t)
			p, c := start(t, parent, ipc.Worker)
			tt.exit(p, c)
			limit := time.Hour
			if tt.name == "too slow" {
				limit = time.Millisecond
			}
			if status := p.Reap(limit); status != tt.status || p.ForbiddenCall != tt.forbidden || p.Crashed != tt.crashed || p.EndReason != tt.reason {
				t.Errorf("%q, forbidden call %t, crashed %t, because of %q", status, p.ForbiddenCall, p.Crashed, p.EndReason)
			}
			if err := p.Channel.Send(new(ipc.Ping)); err == nil {
				t.Error("the channel is open after the exit")
			}
		})
	}
}

// TestLog checks that the lines of a process get its label, and that the last
// line is complete when Reap returns.
func TestLog(t *testing.T) {
	parent, out := newParent(t)
	p, c := start(t, parent, ipc.Keeper)
	fmt.Fprint(c.Log, "one\ntwo")
	c.Exit(fakeparent.Exited(0))
	p.Reap(time.Hour)
	for _, want := range []string{"keeper=1 keeper_pid=1001 keeper_uid=7 one\n", "keeper=1 keeper_pid=1001 keeper_uid=7 two\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q lacks %q", out, want)
		}
	}
}

// TestOrphan checks that the exit of a process is noticed although a process
// that it left behind has its channel and its log open.
func TestOrphan(t *testing.T) {
	parent, _ := newParent(t)
	p, c := start(t, parent, ipc.Worker)
	c.Orphan(fakeparent.Exited(1))
	if m, err := p.Channel.Receive(); err != io.EOF {
		t.Errorf("received %v, %v", m, err)
	}
	if status := p.Reap(time.Hour); status != "exit status 1" {
		t.Error(status)
	}
}

// TestShow checks that Show sends no signal that kills.
func TestShow(t *testing.T) {
	parent, _ := newParent(t)
	p, _ := start(t, parent, ipc.Worker)
	p.LogCounters()
	if s := <-parent.Signals; s.Number != p.Number || s.Kill {
		t.Errorf("%+v", s)
	}
}

// TestLiveness checks that a process is killed if it does not answer a Ping,
// and that only an answer to the pending Ping is accepted, once.
func TestLiveness(t *testing.T) {
	parent, _ := newParent(t)
	p, c := start(t, parent, ipc.Worker)
	c.Ready()
	if _, err := p.Channel.Receive(); err != nil {
		t.Fatal(err)
	}
	var l process.Liveness
	if l.HandlePong(0) == nil || l.HandlePong(1) == nil {
		t.Error("an answer without a question is accepted")
	}
	for n := range uint64(3) {
		l.Check(p, time.Hour)
		l.Check(p, time.Hour) // sends no second Ping
		m, err := c.Channel.Receive()
		if ping, ok := m.Message.(*ipc.Ping); err != nil || !ok || ping.Number != n+1 || l.PendingSince().IsZero() {
			t.Fatalf("%v %v", m, err)
		}
		if l.HandlePong(n) == nil {
			t.Error("an answer to an earlier Ping is accepted")
		}
		if err := l.HandlePong(n + 1); err != nil || !l.PendingSince().IsZero() {
			t.Error(err)
		}
	}
	l.Check(p, 0)
	time.Sleep(time.Millisecond)
	l.Check(p, 0)
	if p.Reap(time.Hour); p.EndReason != "has not read its channel for 0s" {
		t.Errorf("ended because it %q", p.EndReason)
	}
}

// TestPingWaitsForRoom checks that a process whose channel was full gets its Ping
// later, and that it can't answer it earlier.
func TestPingWaitsForRoom(t *testing.T) {
	parent, _ := newParent(t)
	p, c := start(t, parent, ipc.Worker)
	c.Ready()
	if _, err := p.Channel.Receive(); err != nil {
		t.Fatal(err)
	}
	filled := 0
	for p.Channel.TrySend(new(work.Drain)) == nil {
		filled++
	}
	var l process.Liveness
	l.Check(p, time.Hour)
	if l.HandlePong(1) == nil {
		t.Error("an answer to a Ping that was not sent is accepted")
	}
	for range filled {
		if _, err := c.Channel.Receive(); err != nil {
			t.Fatal(err)
		}
	}
	l.Check(p, time.Hour)
	m, err := c.Channel.Receive()
	if ping, ok := m.Message.(*ipc.Ping); err != nil || !ok {
		t.Fatalf("%v %v", m, err)
	} else if err := l.HandlePong(ping.Number); err != nil {
		t.Error(err)
	}
}

// TestParentIsBusy checks that the dispatcher never waits for a parent that
// does not read its channel, and that no message is lost or overtaken.
func TestParentIsBusy(t *testing.T) {
	own, tested := fakeparent.Channel(t, ipc.Parent, ipc.Dispatcher, ipc.Serving)
	p := process.NewParent(tested)
	const n = 20_000 // far more than the channel holds
	for i := range uint32(n) {
		p.Send(&ipc.GenerationReleased{ID: i})
	}
	p.Close()
	for i := range uint32(n) {
		m, err := own.Receive()
		if r, ok := m.Message.(*ipc.GenerationReleased); err != nil || !ok || r.ID != i {
			t.Fatalf("message %d is %v, %v", i, m.Message, err)
		}
	}
	if m, err := own.Receive(); err != io.EOF {
		t.Errorf("after Close: %v, %v", m, err)
	}
}
