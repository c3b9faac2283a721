package auditlog_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"schedrestd/gateway/dispatcher/auditlog"
	"schedrestd/gateway/dispatcher/process"
	"schedrestd/gateway/dispatcher/process/fakeparent"
	"schedrestd/gateway/dispatcher/relay"
	"schedrestd/gateway/dispatcher/service"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

const long = time.Hour // longer than any test

// newLog returns a Log without auditors.
func newLog(t *testing.T) (*fakeparent.Parent, *auditlog.Log) {
	return newLogWith(t, long, io.Discard)
}

// newLogWith returns a Log that writes its own log lines to out.
func newLogWith(t *testing.T, exitLimit time.Duration, out io.Writer) (*fakeparent.Parent, *auditlog.Log) {
	parent := fakeparent.New(t, relay.Text(io.Discard))
	spec := service.New(service.Options{Role: ipc.Auditor, Threads: 1, Quota: relay.NewQuota(100, 100), StartLimit: long, PingTimeout: long,
		ExitLimit: exitLimit, Log: slog.New(slog.NewTextHandler(out, nil))})
	log := auditlog.New(spec, parent.Starter, parent.Sender)
	parent.HandleWith(func(m ipc.Message) bool {
		answer, ok := m.(*ipc.LogFileResult)
		if ok {
			log.PassAnswer(answer)
		}
		return ok
	})
	return parent, log
}

// start starts an auditor that is ready.
func start(t *testing.T, parent *fakeparent.Parent, log *auditlog.Log) (*auditlog.Feed, *fakeparent.Process) {
	t.Helper()
	var auditor *fakeparent.Process
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		if auditor = parent.Next(); auditor != nil {
			auditor.Ready()
		}
	}()
	feed, err := log.Start(1, func(uint32, string) {})
	<-ready
	if err != nil {
		t.Fatal(err)
	}
	return feed, auditor
}

// receive returns the next message to the auditor.
func receive(t *testing.T, auditor *fakeparent.Process) ipc.Message {
	t.Helper()
	m, err := auditor.Receive()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestFacts checks that an auditor that reads slowly gets all facts, in order,
// and that the dispatcher never waits for it. Stop must wait until all facts
// were sent.
func TestFacts(t *testing.T) {
	parent, log := newLog(t)
	feed, auditor := start(t, parent, log)
	const n = 2000 // more than the channel holds
	for i := range uint32(n) {
		feed.ConnAssigned(i, &ipc.Connection{ID: uint64(i), Network: ipc.TCP})
		feed.ConnClosed(uint64(i))
		feed.WorkerExited(i, strings.Repeat("x", 2*ipc.MaxReason))
	}
	stopped := make(chan struct{})
	go func() { feed.Stop(); close(stopped) }()
	time.Sleep(process.ExitGrace + 100*time.Millisecond) // the auditor may take as long as its own limit permits
	for i := range uint32(n) {
		if m, ok := receive(t, auditor).(*work.ConnectionFacts); !ok || m.Worker != i || m.ID != uint64(i) {
			t.Fatalf("fact %d: %+v", i, m)
		}
		if m, ok := receive(t, auditor).(*work.ConnectionReleased); !ok || m.ID != uint64(i) {
			t.Fatalf("fact %d: %+v", i, m)
		}
		if m, ok := receive(t, auditor).(*work.WorkerExited); !ok || m.Worker != i || len(m.Status) != ipc.MaxReason {
			t.Fatalf("fact %d: %+v", i, m)
		}
	}
	if m, err := auditor.Receive(); err != io.EOF {
		t.Errorf("after the last fact: %v, %v", m, err)
	}
	select {
	case <-stopped:
		t.Error("Stop did not wait for the auditor's exit")
	default:
	}
	auditor.Exit(fakeparent.Exited(0))
	<-stopped
}

// TestLostFacts checks that the number of facts that an auditor did not receive
// is logged, and that it was killed because it did not exit in time.
func TestLostFacts(t *testing.T) {
	var out bytes.Buffer
	parent, log := newLogWith(t, 50*time.Millisecond, &out)
	feed, _ := start(t, parent, log)
	const n = 5000
	for i := range uint64(n) {
		feed.ConnClosed(i)
	}
	feed.Stop()
	text := out.String()
	lost := 0
	if m := regexp.MustCompile(`facts=(\d+)`).FindStringSubmatch(text); m != nil {
		lost, _ = strconv.Atoi(m[1])
	}
	if lost == 0 || lost >= n || !strings.Contains(text, "auditor did not finish") { // some are in the channel
		t.Errorf("%d facts were sent, logged:\n%s", n, text)
	}
}

// TestAuditorExits checks that the dispatcher does not wait for an auditor that
// has exited.
func TestAuditorExits(t *testing.T) {
	parent, log := newLog(t)
	feed, auditor := start(t, parent, log)
	auditor.Exit(fakeparent.Exited(2))
	<-feed.Done
	for i := range uint64(10_000) {
		feed.ConnClosed(i)
	}
	feed.Stop()
	if err := feed.Err(); err == nil || !strings.Contains(err.Error(), "exit status 2") {
		t.Errorf("%v", err)
	}
	var none *auditlog.Feed
	none.ConnClosed(1)
	none.Stop()
}

// TestFollow checks that the questions of auditors reach the parent, and that
// each answer reaches the auditor that has waited longest.
func TestFollow(t *testing.T) {
	parent, log := newLog(t)
	_, first := start(t, parent, log)
	_, second := start(t, parent, log)
	for _, auditor := range []*fakeparent.Process{first, second} {
		if err := auditor.Channel.Send(new(ipc.CheckLogFile)); err != nil {
			t.Fatal(err)
		}
		if m, ok := (<-parent.Messages).(*ipc.CheckLogFile); !ok {
			t.Fatalf("the parent got %v", m)
		}
	}
	for _, auditor := range []*fakeparent.Process{first, second} {
		reason := fmt.Sprintf("the answer to auditor %d", auditor.Number)
		parent.Send(&ipc.LogFileResult{Reason: reason})
		if m, ok := receive(t, auditor).(*ipc.LogFileResult); !ok || m.Reason != reason {
			t.Errorf("auditor %d got %+v, want %q", auditor.Number, m, reason)
		}
	}
}

// TestFollowTooOften checks that an auditor is killed if it asks again before
// it gets an answer.
func TestFollowTooOften(t *testing.T) {
	parent, log := newLog(t)
	feed, auditor := start(t, parent, log)
	for range 2 {
		if err := auditor.Channel.Send(new(ipc.CheckLogFile)); err != nil {
			t.Fatal(err)
		}
	}
	<-feed.Done
	if err := feed.Err(); err == nil || !strings.Contains(err.Error(), "sent CheckLogFile too often") {
		t.Errorf("%v", err)
	}
}

// TestReports checks that a report about a worker is passed on, and that an
// auditor is killed for a message that it may not send.
func TestReports(t *testing.T) {
	parent, log := newLog(t)
	type report struct {
		number uint32
		reason string
	}
	reports := make(chan report, 1)
	auditors := make(chan *fakeparent.Process, 1)
	go func() {
		auditor := parent.Next()
		auditor.Ready()
		auditors <- auditor
	}()
	feed, err := log.Start(1, func(number uint32, reason string) { reports <- report{number, reason} })
	if err != nil {
		t.Fatal(err)
	}
	auditor := <-auditors
	if err := auditor.Channel.Send(&work.WorkerViolation{Number: 5, Reason: "broke it\x1b"}); err != nil {
		t.Fatal(err)
	}
	if got := <-reports; got.number != 5 || got.reason != `to the auditor: broke it\x1b` {
		t.Errorf("%+v", got)
	}
	if err := auditor.Channel.Send(&ipc.Pong{Number: 9}); err != nil {
		t.Fatal(err)
	}
	<-feed.Done
	if err := feed.Err(); err == nil || !strings.Contains(err.Error(), "which was not requested") {
		t.Errorf("%v", err)
	}
}
