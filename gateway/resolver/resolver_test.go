package resolver

import (
	"errors"
	"io"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/service"
	"schedrestd/internal/limit"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// serve runs a resolver that uses d, and returns the parent's end of its
// channel.
func serve(t *testing.T, d *directory) *ipc.Channel {
	t.Helper()
	parent, fd, err := ipc.Pair(ipc.Managers, ipc.Resolver)
	must(t, err)
	t.Cleanup(func() { parent.Close() })
	own, err := ipc.Open(fd, ipc.Resolver, ipc.Managers)
	must(t, err)
	for _, m := range []ipc.Message{new(ipc.ServiceSetup), new(ipc.Attributes)} {
		must(t, parent.Send(m))
		_, err := own.Receive()
		must(t, err)
	}
	must(t, own.Send(new(ipc.Ready)))
	_, err = parent.Receive()
	must(t, err)
	go service.Run(ipc.Resolver, own, &resolver{dispatcher: own, names: d})
	return parent
}

// worker connects a new worker with the given number to a resolver, and returns
// the worker's channel. The parent argument is the parent's channel to the
// resolver.
func worker(t *testing.T, parent *ipc.Channel, number uint32) *ipc.Channel {
	t.Helper()
	c, fd, err := ipc.Pair(ipc.Worker, ipc.Resolver)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	must(t, parent.Send(&work.WorkerChannel{Number: number}, fd))
	must(t, unix.Close(fd))
	return c
}

func receive(t *testing.T, c *ipc.Channel) ipc.Message {
	t.Helper()
	m, err := c.Receive()
	must(t, err)
	return m.Message
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestAnswers checks that the dispatcher and the other workers get answers
// while the queries of one worker block.
func TestAnswers(t *testing.T) {
	d := newDirectory()
	slow := make(chan struct{})
	defer close(slow)
	d.user = func(uid uint32) (string, error) {
		if uid >= 1000 {
			<-slow
		}
		return "alice", nil
	}
	parent := serve(t, d)
	captured, honest := worker(t, parent, 1), worker(t, parent, 2)
	for i := range uint32(limit.ResolverPending.Share) {
		must(t, captured.Send(&work.Lookup{ID: uint64(i), Number: 1000 + i}))
	}
	for _, c := range []*ipc.Channel{parent, honest} {
		must(t, c.Send(&work.Lookup{ID: 5, Number: 7}))
		if k, ok := receive(t, c).(*work.LookupResult); !ok || k.ID != 5 || !k.Available || k.Name != "alice" {
			t.Errorf("answered %+v", k)
		}
	}
}

// TestAsksTooMuch checks that a worker with too many pending questions is
// reported to the dispatcher, and gets no more answers.
func TestAsksTooMuch(t *testing.T) {
	d := newDirectory()
	slow := make(chan struct{})
	defer close(slow)
	d.user = func(uint32) (string, error) { <-slow; return "", nil }
	parent := serve(t, d)
	c := worker(t, parent, 9)
	for i := range uint32(limit.ResolverPending.Share + 1) {
		_ = c.Send(&work.Lookup{ID: uint64(i), Number: i})
	}
	if b, ok := receive(t, parent).(*work.WorkerViolation); !ok || b.Number != 9 || b.Reason == "" {
		t.Errorf("the parent receives %+v", b)
	}
	if _, err := c.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("the worker receives %v", err)
	}
}

// TestPing checks that the resolver answers a ping while every look-up hangs.
func TestPing(t *testing.T) {
	d := newDirectory()
	slow := make(chan struct{})
	defer close(slow)
	d.user = func(uint32) (string, error) { <-slow; return "", nil }
	parent := serve(t, d)
	for i := range uint32(100) {
		must(t, parent.Send(&work.Lookup{ID: uint64(i), Number: i}))
	}
	must(t, parent.Send(&ipc.Ping{Number: 3}))
	timer := time.AfterFunc(time.Minute, func() { parent.Close() })
	defer timer.Stop()
	if p, ok := receive(t, parent).(*ipc.Pong); !ok || p.Number != 3 {
		t.Errorf("answered %+v", p)
	}
}
