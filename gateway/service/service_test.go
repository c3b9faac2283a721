package service

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// A recorder is a service whose method Serve waits for a while before it
// records the worker.
type recorder struct {
	recorded atomic.Bool
	known    chan bool // for each message from the dispatcher: whether the worker had been recorded
}

func (r *recorder) Serve(c *Client) {
	time.Sleep(10 * time.Millisecond)
	r.recorded.Store(true)
	c.EachMessage(func(ipc.Message) (bool, error) { return false, nil })
}

func (r *recorder) Handle(ipc.Received) (bool, error) {
	r.known <- r.recorded.Load()
	return true, nil
}

func (r *recorder) Counters() []any { return nil }
func (r *recorder) Close()          {}

// run runs the service s in the role of an auditor. It returns the dispatcher's
// end of the channel.
func run(t *testing.T, s Service) *ipc.Channel {
	t.Helper()
	dispatcher, own := ready(t)
	go Run(ipc.Auditor, own, s)
	return dispatcher
}

// ready returns both ends of a channel to an auditor that is ready.
func ready(t *testing.T) (dispatcher, own *ipc.Channel) {
	t.Helper()
	dispatcher, fd, err := ipc.Pair(ipc.Managers, ipc.Auditor)
	must(t, err)
	t.Cleanup(func() { dispatcher.Close() })
	own, err = ipc.Open(fd, ipc.Auditor, ipc.Managers)
	must(t, err)
	for _, m := range []ipc.Message{new(ipc.ServiceSetup), new(ipc.Attributes)} {
		must(t, dispatcher.Send(m))
		_, err := own.Receive()
		must(t, err)
	}
	must(t, own.Send(new(ipc.Ready)))
	_, err = dispatcher.Receive()
	must(t, err)
	return dispatcher, own
}

// introduce connects a worker to a service, and returns the worker's end of the
// channel.
func introduce(t *testing.T, dispatcher *ipc.Channel, number uint32) *ipc.Channel {
	t.Helper()
	worker, fd, err := ipc.Pair(ipc.Worker, ipc.Auditor)
	must(t, err)
	t.Cleanup(func() { worker.Close() })
	must(t, dispatcher.Send(&work.WorkerChannel{Number: number}, fd))
	must(t, unix.Close(fd))
	return worker
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestWorkerIsKnown checks that a service records a new worker before the
// service handles the dispatcher's next message.
func TestWorkerIsKnown(t *testing.T) {
	r := &recorder{known: make(chan bool, 1)}
	dispatcher := run(t, r)
	introduce(t, dispatcher, 7)
	must(t, dispatcher.Send(&work.WorkerExited{Worker: 7}))
	if !<-r.known {
		t.Error("the exit of a worker was handled before the worker was known")
	}
}

// TestLog checks that a line of the log begins with its level and has no time.
func TestLog(t *testing.T) {
	var b strings.Builder
	newLog(&b, slog.LevelInfo).Info("ready", slog.Group("g", "time", 1))
	if got, want := b.String(), "level=INFO msg=ready g.time=1\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPingBeforeClose checks that the end of the channel is no failure, if it
// follows a Ping that the service has not answered yet.
func TestPingBeforeClose(t *testing.T) {
	dispatcher, own := ready(t)
	must(t, dispatcher.Send(&ipc.Ping{Number: 1}))
	dispatcher.Close()
	must(t, Run(ipc.Auditor, own, new(recorder)))
}

// TestUnhandled checks that a service reports a worker that sends it a message
// of a type that the service does not handle. The report must name that type.
func TestUnhandled(t *testing.T) {
	dispatcher := run(t, new(recorder))
	must(t, introduce(t, dispatcher, 7).Send(&query.Outcome{ID: 1}))
	m, err := dispatcher.Receive()
	must(t, err)
	if b, ok := m.Message.(*work.WorkerViolation); !ok || b.Number != 7 || !strings.Contains(b.Reason, "Outcome") {
		t.Errorf("the dispatcher receives %+v", m.Message)
	}
}
