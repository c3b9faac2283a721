package pool

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/dispatcher/process/fakeparent"
	"schedrestd/gateway/dispatcher/relay"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/security"
)

// hour is a time limit that no test reaches.
const hour = time.Hour

// A testPool is a pool whose workers the test plays.
type testPool struct {
	*Pool
	t       *testing.T
	parent  *fakeparent.Parent
	log     *syncBuffer
	started chan error    // gets what Set.Start reports
	ended   chan struct{} // closed when the pool has ended
}

// newTestPool returns a pool with two places and ten slots. The function change
// may change the pool before it starts.
func newTestPool(t *testing.T, change func(*testPool)) *testPool {
	t.Helper()
	log := new(syncBuffer)
	text := slog.New(slog.NewTextHandler(log, nil))
	s := running(t, Options{Connections: 10, WaitLimit: hour, Log: text})
	parent := fakeparent.New(t, relay.Text(io.Discard))
	s.Starter = parent.Starter
	config := Config{Workers: 2, Connections: 10, Threads: 2, StartLimit: hour, WaitLimit: hour, PingTimeout: hour, RetireLimit: hour, Quota: relay.NewQuota(1000, 1000), DialBurst: 1, DialRate: 1, Log: text}
	config.Setup.Limits.Drain = hour
	g := NewGeneration(Generation{ID: 1, Config: config, Audit: unaudited{},
		Provision: func(*work.WorkerChannel, *ipc.Channel) error { return nil }})
	p := &testPool{t: t, parent: parent, log: log, started: make(chan error, 1), ended: make(chan struct{}),
		Pool: s.NewPool(g, security.Identity{UID: 7, GID: 8})}
	p.OnEnd = func() { close(p.ended) }
	if change != nil {
		change(p)
	}
	s.Slots.Admit = p.Submit
	p.sync(func() { s.Start(p.Pool, func(err error) { p.started <- err }) })
	return p
}

// servingOne returns a pool with one place, whose worker is ready.
func servingOne(t *testing.T) (*testPool, *fakeparent.Process) {
	t.Helper()
	p := newTestPool(t, func(p *testPool) { p.Workers = 1 })
	w := p.next()
	must(t, <-p.started)
	return p, w
}

// serving returns the same as newTestPool, with two workers that are ready.
func serving(t *testing.T, change func(*testPool)) (p *testPool, first, second *fakeparent.Process) {
	t.Helper()
	p = newTestPool(t, change)
	first, second = p.next(), p.next()
	must(t, <-p.started)
	return p, first, second
}

// servingHalf returns a pool with two workers. The first one holds a connection
// with the number id.
func servingHalf(t *testing.T) (p *testPool, first, second *fakeparent.Process, id uint64) {
	t.Helper()
	p, first, second = serving(t, nil)
	p.connect()
	p.connect() // each worker gets one of them
	id, _ = p.takeConn(first)
	other, _ := p.takeConn(second)
	must(t, second.Channel.Send(&work.ConnectionDone{ID: other}))
	await(t, "one slot is free", func() bool { return p.Slots.held() == 1 })
	return p, first, second, id
}

// next returns the next worker, after it has become ready.
func (p *testPool) next() *fakeparent.Process {
	p.t.Helper()
	w := p.parent.Next()
	w.Ready()
	must(p.t, w.Channel.Send(&ipc.KeysResult{OK: true}))
	await(p.t, "the worker is ready", func() (ready bool) {
		p.sync(func() { ready = p.workers[w.Number] != nil && p.workers[w.Number].ready })
		return ready
	})
	return w
}

// connect lets a client connect, and returns the client's end.
func (p *testPool) connect() (client *os.File) {
	p.t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(p.t, err)
	client = os.NewFile(uintptr(fds[0]), "client")
	p.t.Cleanup(func() { client.Close() })
	c := &Connection{FD: fds[1], Arrival: uint64(fds[1])}
	c.Network = ipc.Unix
	p.sync(func() { p.Slots.Arrive(c) })
	return client
}

// takeConn makes w take the next connection. It returns the connection's
// number, and the worker's descriptor.
func (p *testPool) takeConn(w *fakeparent.Process) (id uint64, conn *os.File) {
	p.t.Helper()
	m, err := w.Channel.Receive()
	must(p.t, err)
	c, ok := m.Message.(*ipc.Connection)
	if !ok {
		p.t.Fatalf("worker %d got %T", w.Number, m.Message)
	}
	must(p.t, w.Channel.Send(&work.ConnectionTaken{ID: c.ID}))
	conn = os.NewFile(uintptr(m.FDs[0]), "connection")
	p.t.Cleanup(func() { conn.Close() })
	return c.ID, conn
}

// logged waits until the log contains text.
func (p *testPool) logged(text string) {
	p.t.Helper()
	for end := time.Now().Add(testTimeout); !strings.Contains(p.log.String(), text); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("the log lacks %q:\n%s", text, p.log)
		}
	}
}

// wantEnd waits until the pool has ended.
func (p *testPool) wantEnd() {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(testTimeout):
		p.t.Fatalf("the pool has not ended:\n%s", p.log)
	}
}

// openFiles returns how many descriptors this process has open.
func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(list)
}

// TestWorkersDie kills 200 workers, each while it holds connections and others
// wait in its channel. The clients of the connections that it holds must notice
// it, and other workers must get the connections that wait. At the end all slots
// must be free, and no descriptor may have leaked.
func TestWorkersDie(t *testing.T) {
	p, first, second := serving(t, nil)
	var before int
	for n := range 200 {
		if n == 10 {
			before = openFiles(t)
		}
		var clients []*os.File
		for range 4 {
			clients = append(clients, p.connect())
		}
		_, conn := p.takeConn(first)
		_, other := p.takeConn(second)
		first.Exit(unix.WaitStatus(unix.SIGKILL))
		conn.Close()
		id, moved := p.takeConn(second)
		must(t, second.Channel.Send(&work.ConnectionDone{ID: id}))
		moved.Close()
		_, last := p.takeConn(second)
		second.Exit(unix.WaitStatus(unix.SIGKILL))
		other.Close()
		last.Close()
		for _, c := range clients {
			if b, err := io.ReadAll(c); err != nil || len(b) > 0 {
				t.Fatalf("death %d: a client read %q, %v", n, b, err)
			}
			c.Close()
		}
		first, second = p.next(), p.next()
	}
	if held := p.Slots.held(); held != 0 {
		t.Errorf("%d slots are taken", held)
	}
	await(t, "no descriptor has leaked", func() bool { return openFiles(t) <= before })
}

// TestFailedStarts checks why a pool does not start if one of its first workers
// does not become ready.
func TestFailedStarts(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		play       func(w *fakeparent.Process) error
		kind       errs.Kind
	}{
		{"refuses", `a worker cannot serve: no\x1bhandlers`, func(w *fakeparent.Process) error { return w.Channel.Send(&ipc.Refused{Reason: "no\x1bhandlers"}) }, errs.Denied},
		{"exits", "a worker exited before it was ready: exit status 3", func(w *fakeparent.Process) error { w.Exit(fakeparent.Exited(3)); return nil }, errs.Internal},
		{"makes a forbidden call", "it made a forbidden system call", func(w *fakeparent.Process) error { w.Exit(unix.WaitStatus(unix.SIGSYS)); return nil }, errs.Internal},
		{"can't use the keys", "a worker cannot use the key set of RS256 tokens: not JSON", func(w *fakeparent.Process) error {
			return errors.Join(w.Channel.Send(new(ipc.Ready)), w.Channel.Send(&ipc.KeysResult{Reason: "not JSON"}))
		}, errs.Denied},
		{"is not ready in time", "was not ready within 20ms", func(*fakeparent.Process) error { return nil }, errs.Unavailable},
		{"can't be started", "no process left", nil, errs.Unavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newTestPool(t, func(p *testPool) {
				p.Workers = 1
				if tt.name == "is not ready in time" {
					p.StartLimit = 20 * time.Millisecond
				}
				if tt.play == nil {
					p.parent.Refuse(errs.New(errs.Unavailable, "no process left"))
				}
			})
			if tt.play != nil {
				must(t, tt.play(p.parent.Next()))
			}
			if err := <-p.started; err == nil || !strings.Contains(err.Error(), tt.want) || errs.KindOf(err) != tt.kind {
				t.Errorf("%v, want %q", err, tt.want)
			}
			p.wantEnd()
		})
	}
}

// TestMisbehaving checks that a worker is killed if it breaks the protocol, or
// does not read its channel. The client whose connection it holds must notice
// it, and the next worker must start.
func TestMisbehaving(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		play       func(p *testPool, w *fakeparent.Process, id uint64) error
	}{
		{"is done with a connection that it was not given", "sent ConnectionDone for connection 99, which it does not hold",
			func(_ *testPool, w *fakeparent.Process, _ uint64) error {
				return w.Channel.Send(&work.ConnectionDone{ID: 99})
			}},
		{"is done twice", "which it does not hold", func(_ *testPool, w *fakeparent.Process, id uint64) error {
			return errors.Join(w.Channel.Send(&work.ConnectionDone{ID: id}), w.Channel.Send(&work.ConnectionDone{ID: id}))
		}},
		{"takes a connection twice", "which it was not given", func(_ *testPool, w *fakeparent.Process, id uint64) error {
			return w.Channel.Send(&work.ConnectionTaken{ID: id})
		}},
		{"answers without a question", "which was not requested", func(_ *testPool, w *fakeparent.Process, _ uint64) error { return w.Channel.Send(&ipc.Pong{Number: 5}) }},
		{"accepts its keys twice", "sent KeysResult for keys that it was not given", func(_ *testPool, w *fakeparent.Process, _ uint64) error {
			return w.Channel.Send(&ipc.KeysResult{OK: true})
		}},
		{"does not answer a Ping", "has not read its channel for 10ms", func(p *testPool, _ *fakeparent.Process, _ uint64) error {
			p.sync(func() { p.PingTimeout = 10 * time.Millisecond; p.checkLiveness() })
			time.Sleep(20 * time.Millisecond)
			p.sync(func() { p.checkLiveness() })
			return nil
		}},
		{"breaks the protocol of a service", "to the keeper: too many questions", func(p *testPool, w *fakeparent.Process, _ uint64) error {
			p.ReportViolation(w.Number, "to the keeper: too many questions")
			return nil
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, w := servingOne(t)
			client := p.connect()
			id, conn := p.takeConn(w)
			must(t, tt.play(p, w, id))
			p.logged(tt.want)
			conn.Close()
			if b, err := io.ReadAll(client); err != nil || len(b) > 0 {
				t.Errorf("the client read %q, %v", b, err)
			}
			p.next()
			if held := p.Slots.held(); held != 0 {
				t.Errorf("%d slots are taken", held)
			}
		})
	}
}

// TestPauseAfterFailures checks that the pause before the next start grows
// while workers exit before they have finished a connection, and that there is
// no pause after a worker that has.
func TestPauseAfterFailures(t *testing.T) {
	p, w := servingOne(t)
	failures := func() (n int) {
		p.sync(func() { n = p.workers[w.Number].place.failures })
		return n
	}
	for n := range 3 {
		if got := failures(); got != n {
			t.Errorf("after %d failures it counts %d", n, got)
		}
		w.Exit(fakeparent.Exited(1))
		w = p.next()
	}
	p.connect()
	id, _ := p.takeConn(w)
	must(t, w.Channel.Send(&work.ConnectionDone{ID: id}))
	await(t, "the slot is free", func() bool { return p.Slots.held() == 0 })
	w.Exit(fakeparent.Exited(1))
	if w = p.next(); failures() != 0 {
		t.Errorf("after a worker that finished a connection it counts %d failures", failures())
	}
}

// TestRotate checks that the pool asks once for the next generation, after the
// configured number of connections.
func TestRotate(t *testing.T) {
	rotated := 0
	p, _, _ := serving(t, func(p *testPool) { p.RotateAfter, p.OnRotate = 3, func() { rotated++ } })
	for n := 1; n <= 5; n++ {
		p.connect()
		var got int
		p.sync(func() { got = rotated })
		if want := min(n/3, 1); got != want {
			t.Errorf("after %d connections it has asked %d times", n, got)
		}
	}
}

// TestDrainWorkers checks that each worker is asked to finish its requests, that
// its connections stay until it has, and that no other worker starts.
func TestDrainWorkers(t *testing.T) {
	p, first, second, id := servingHalf(t)
	p.sync(p.drain)
	for _, w := range []*fakeparent.Process{first, second} {
		if m, err := w.Receive(); err != nil {
			t.Fatal(err)
		} else if _, ok := m.(*work.Drain); !ok {
			t.Errorf("worker %d got %T", w.Number, m)
		}
	}
	second.Exit(fakeparent.Exited(0))
	must(t, first.Channel.Send(&work.ConnectionDone{ID: id}))
	first.Exit(fakeparent.Exited(0))
	p.wantEnd()
	if strings.Count(p.log.String(), `msg="worker exited"`) != 2 || p.Slots.held() != 0 {
		t.Errorf("%d slots are taken:\n%s", p.Slots.held(), p.log)
	}
}

// TestDrainBusyWorker checks that a worker whose channel is full is not killed when
// the gateway stops, and that it first gets the connections that wait for it.
func TestDrainBusyWorker(t *testing.T) {
	p, w := servingOne(t)
	p.sync(func() {
		must(t, p.workers[w.Number].Channel.WithFD(func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 1) }))
	})
	waiting, connections := 0, 0
	for ; waiting < 2; connections++ {
		p.connect()
		p.sync(func() { waiting = len(p.waiting) })
	}
	p.sync(p.drain)
	for range connections {
		id, _ := p.takeConn(w)
		must(t, w.Channel.Send(&work.ConnectionDone{ID: id}))
	}
	if m, err := w.Receive(); err != nil {
		t.Fatal(err)
	} else if _, ok := m.(*work.Drain); !ok {
		t.Errorf("the worker got %T", m)
	}
	w.Exit(fakeparent.Exited(0))
	p.wantEnd()
	if log := p.log.String(); strings.Contains(log, "terminated") || strings.Contains(log, Stopping) {
		t.Errorf("of %d connections:\n%s", connections, log)
	}
}

// TestRetireWorkers checks that a retired worker keeps its connections, and
// that another pool gets those that wait.
func TestRetireWorkers(t *testing.T) {
	p, first, second, id := servingHalf(t)
	var waiting []*Connection
	p.sync(func() {
		p.gen.Replacing = true // so that the next connection waits
		c := &Connection{FD: -1}
		p.enqueue(c)
		waiting = p.Retire()
	})
	if len(waiting) != 1 {
		t.Errorf("%d connections wait for another pool", len(waiting))
	}
	for _, w := range []*fakeparent.Process{first, second} {
		if m, err := w.Receive(); err != nil {
			t.Fatal(err)
		} else if _, ok := m.(*work.Retire); !ok {
			t.Errorf("worker %d got %T", w.Number, m)
		}
	}
	second.Exit(fakeparent.Exited(0))
	must(t, first.Channel.Send(&work.ConnectionDone{ID: id}))
	first.Exit(fakeparent.Exited(0))
	p.wantEnd()
}

// TestStaysAfterRetire checks that the pool first asks and then kills a worker
// that was retired and does not exit: if it holds a connection, after
// RetireLimit, and otherwise as soon as it has had none for a while.
func TestStaysAfterRetire(t *testing.T) {
	p, first, second, _ := servingHalf(t)
	p.sync(func() { p.Retire() })
	first.Receive()
	second.Receive()
	p.sync(func() {
		p.exitRequestedAt, p.lastUsed = time.Now().Add(-2*hour), time.Now().Add(-2*hour)
		p.checkLiveness()
	})
	p.logged("was asked to exit, has had no connection for 1h0m0s, and still runs")
	p.logged("retired worker asked to finish")
	if m, err := first.Receive(); err != nil {
		t.Fatal(err)
	} else if _, ok := m.(*work.Drain); !ok {
		t.Errorf("the retired worker got %T", m)
	}
	p.sync(func() {
		p.exitRequestedAt = time.Now().Add(-2 * hour)
		p.checkLiveness()
	})
	p.logged("was retired and asked to finish, but still runs")
	p.wantEnd()
}

// TestLazy checks that a lazy pool starts a worker when a connection waits, as
// the user of that connection, and that it turns all connections away if the
// worker can't be started.
func TestLazy(t *testing.T) {
	p := newTestPool(t, func(p *testPool) { p.Lazy, p.Workers = true, 1 })
	must(t, <-p.started)
	client := p.connect()
	w := p.parent.Next()
	if w.Client == 0 {
		t.Error("the worker runs as no client's user")
	}
	w.Ready()
	must(t, w.Channel.Send(&ipc.KeysResult{OK: true}))
	id, conn := p.takeConn(w)
	must(t, w.Channel.Send(&work.ConnectionDone{ID: id}))
	conn.Close()
	await(t, "the slot is free", func() bool { return p.Slots.held() == 0 })
	w.Exit(fakeparent.Exited(0))
	await(t, "the place is vacant", func() (vacant bool) { p.sync(func() { vacant = len(p.vacant) == 1 }); return vacant })
	client.Close()

	p.parent.Refuse(errs.New(errs.Unavailable, "no process left"))
	wantTurnedAway(t, p.connect())
	p.logged("its worker could not be started")
	wantTurnedAway(t, p.connect())
	p.logged("the last start of its worker failed")
	p.parent.Refuse(nil)
	await(t, "the pause is over", func() (over bool) { p.sync(func() { over = !p.backingOff }); return over })
	p.connect()
	p.next()
}

// TestSingleUse checks that a pool for a single connection ends with it, and
// that its worker is killed if it does not exit.
func TestSingleUse(t *testing.T) {
	for name, stays := range map[string]bool{"exits": false, "stays": true} {
		t.Run(name, func(t *testing.T) {
			p := newTestPool(t, func(p *testPool) { p.Lazy, p.SingleUse, p.Workers = true, true, 1 })
			must(t, <-p.started)
			p.connect()
			w := p.next()
			id, _ := p.takeConn(w)
			must(t, w.Channel.Send(&work.ConnectionDone{ID: id}))
			if m, err := w.Receive(); err != nil {
				t.Fatal(err)
			} else if _, ok := m.(*work.Drain); !ok {
				t.Errorf("the worker got %T", m)
			}
			if stays {
				p.sync(func() {
					p.exitRequestedAt, p.lastUsed = time.Now().Add(-2*hour), time.Now().Add(-2*hour)
					p.checkLiveness()
				})
				p.logged("was asked to exit, has had no connection for 1h0m0s, and still runs")
			} else {
				w.Exit(fakeparent.Exited(0))
			}
			p.wantEnd()
		})
	}
}
