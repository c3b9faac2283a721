package dispatch

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/dispatcher/pool"
	"schedrestd/gateway/dispatcher/process"
	"schedrestd/gateway/dispatcher/relay"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
)

// testTimeout is how long a test waits for an expected event.
const testTimeout = 60 * time.Second

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, desc string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(testTimeout); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("did not happen: %s", desc)
		}
	}
}

type syncBuffer struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// newStarter returns a Starter, and the channel on which its parent receives
// requests to start processes.
func newStarter(t *testing.T) (*process.Starter, *ipc.Channel) {
	t.Helper()
	end, fd, err := ipc.Pair(ipc.Parent, ipc.Dispatcher)
	must(t, err)
	t.Cleanup(func() { end.Close() })
	channel, err := ipc.Open(fd, ipc.Dispatcher, ipc.Parent)
	must(t, err)
	channel.Resume(ipc.Serving)
	t.Cleanup(func() { channel.Close() })
	var other *ipc.Channel
	must(t, end.WithFD(func(fd int) (err error) {
		if fd, err = unix.Dup(fd); err == nil {
			other, err = ipc.Open(fd, ipc.Parent, ipc.Dispatcher)
		}
		return err
	}))
	other.Resume(ipc.Serving)
	t.Cleanup(func() { other.Close() })
	return process.NewStarter(process.NewParent(channel), relay.Text(io.Discard)), other
}

// TestLostWorkersAreLimited checks that users can't fill the disk with log
// lines by killing their workers or by preventing workers from starting, for
// example by reaching the limit on their processes. Each failure must be
// counted.
func TestLostWorkersAreLimited(t *testing.T) {
	s, parent := newStarter(t)
	go func() { // answers that no process can be started
		for {
			m, err := parent.Receive()
			if err != nil {
				return
			}
			if r, ok := m.Message.(*ipc.StartProcess); ok {
				_, _ = s.Handle(ipc.Received{Message: &ipc.StartFailed{Number: r.Number, Failure: ipc.FailureOf(errs.New(errs.Internal, "no process"))}})
			}
		}
	}()
	const users = 300
	for name, switches := range map[string]ipc.Switches{
		"worker_per_connection": {WorkerPerConnection: true},
		"become_user":           {BecomeUser: true},
	} {
		t.Run(name, func(t *testing.T) {
			log := new(syncBuffer)
			text := slog.New(slog.NewTextHandler(log, nil))
			set := pool.NewSet(pool.Options{Connections: users, WaitLimit: testTimeout, Log: text})
			defer set.Loop.Stop()
			set.Starter = s
			names := NewNames(set.Loop)
			names.Send = func(ipc.Message, ...int) error { return errors.New("no resolver is running") }
			h := New(Options{Switches: switches, Identities: users, WaitLimit: testTimeout, IdleLimit: testTimeout, Names: names, Log: text}, set, nil)
			set.Slots.Admit = h.Dispatch
			g := pool.NewGeneration(pool.Generation{Config: pool.Config{Workers: 1, Threads: 1, Connections: users, WaitLimit: testTimeout, StartLimit: testTimeout, Quota: relay.NewQuota(1000, 1000), Log: text}})
			switch h := h.(type) {
			case *perConnection:
				h.gen = g
			case *identities:
				h.gen = g
			}
			for uid := range uint32(users) {
				fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
				must(t, err)
				conn := &pool.Connection{Connection: ipc.Connection{UID: 31000 + uid, GID: 31000, Verified: true}, FD: fds[1]}
				set.Do(func() { set.Slots.Arrive(conn) })
				client := os.NewFile(uintptr(fds[0]), "client")
				if b, err := io.ReadAll(client); err != nil || len(b) > 0 {
					t.Errorf("read %q, %v", b, err)
				}
				client.Close()
			}
			set.Do(set.Close)
			<-set.Done
			if n := strings.Count(log.String(), "worker not started"); n < 50 || n > 200 || !strings.Contains(log.String(), "workers_lost_so_far=") {
				t.Errorf("%d lines about %d events:\n%s", n, users, log)
			}
		})
	}
}
