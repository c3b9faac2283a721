package pool

import (
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/dispatcher/process"
	"schedrestd/ipc"
	"schedrestd/security"
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

// sync calls f in the loop, and waits until f returns.
func (l *Loop) sync(f func()) { _ = l.Call(func() error { f(); return nil }) }

// running returns a Set whose loop runs until the end of the test.
func running(t *testing.T, o Options) *Set {
	t.Helper()
	s := NewSet(o)
	s.Slots.Admit = func(*Connection) {}
	t.Cleanup(s.Loop.Stop)
	return s
}

// unaudited is an Auditor that ignores all calls.
type unaudited struct{}

func (unaudited) ConnAssigned(uint32, *ipc.Connection) {}
func (unaudited) ConnClosed(uint64)                    {}
func (unaudited) WorkerExited(uint32, string)          {}

// idle returns a pool without workers, so that connections stay in its queue.
func idle(t *testing.T, limit time.Duration) (p *Pool, log *syncBuffer) {
	t.Helper()
	log = new(syncBuffer)
	text := slog.New(slog.NewTextHandler(log, nil))
	s := running(t, Options{Connections: 3, WaitLimit: limit, Log: text})
	g := NewGeneration(Generation{Config: Config{Connections: 3, WaitLimit: limit, Log: text}, Audit: unaudited{}})
	return s.NewPool(g, security.Identity{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}), log
}

// accepted returns a connection with a slot, and the client's end of the
// connection.
func accepted(t *testing.T, s *Slots) (*Connection, *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	client := os.NewFile(uintptr(fds[0]), "client")
	t.Cleanup(func() { client.Close() })
	c := &Connection{FD: fds[1]}
	c.Network = ipc.Unix
	before := s.held()
	if s.sync(func() { s.Arrive(c) }); s.held() == before {
		t.Fatal("no slot is free")
	}
	return c, client
}

func (s *Slots) held() (n int) {
	s.sync(func() { n = s.Stats().Held })
	return n
}

// wantTurnedAway waits until the client's connection is closed. There must be
// no answer, because there is no worker to send one.
func wantTurnedAway(t *testing.T, client io.Reader) {
	t.Helper()
	if b, err := io.ReadAll(client); err != nil || len(b) > 0 {
		t.Errorf("read %q, %v", b, err)
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

// channelTo returns both ends of a channel to a worker that is already serving.
func channelTo(t *testing.T) (parent, child *ipc.Channel) {
	t.Helper()
	parent, fd, err := ipc.Pair(ipc.Managers, ipc.Worker)
	must(t, err)
	t.Cleanup(func() { parent.Close() })
	child, err = ipc.Open(fd, ipc.Worker, ipc.Managers)
	must(t, err)
	t.Cleanup(func() { child.Close() })
	for _, step := range []struct {
		from, to *ipc.Channel
		m        ipc.Message
	}{{parent, child, &ipc.Setup{}}, {parent, child, &ipc.Attributes{}}, {child, parent, &ipc.Ready{}}, {parent, child, &ipc.Ping{}}} {
		must(t, step.from.Send(step.m))
		_, err := step.to.Receive()
		must(t, err)
	}
	return parent, child
}

func TestPauseGrows(t *testing.T) {
	if Backoff(0) != 0 {
		t.Error("a worker that did its work is replaced at once")
	}
	for n := 1; n < 100; n++ {
		if Backoff(n+1) < Backoff(n) || Backoff(n) <= 0 || Backoff(n) > 30*time.Second {
			t.Errorf("after %d failures %s, then %s", n, Backoff(n), Backoff(n+1))
		}
	}
}

// TestQueueDeadline checks a connection that no worker takes in time. It must
// be closed, counted and logged, and its slot must become free. The goroutine
// that submits the connection must not wait.
func TestQueueDeadline(t *testing.T) {
	p, log := idle(t, 50*time.Millisecond)
	var clients []*os.File
	for range 3 {
		c, client := accepted(t, p.Slots)
		p.sync(func() { p.Submit(c) })
		clients = append(clients, client)
	}
	for _, c := range clients {
		wantTurnedAway(t, c)
	}
	await(t, "the slots are free", func() bool { return p.Slots.held() == 0 })
	await(t, "the log counts three", func() bool { return strings.Contains(log.String(), "refused_so_far=3") })
}

// TestDeadlineOfTheOnlyOne checks that a pool for a single connection ends,
// with its worker, when that connection is turned away.
func TestDeadlineOfTheOnlyOne(t *testing.T) {
	p, _ := idle(t, 50*time.Millisecond)
	p.Lazy, p.SingleUse = true, true
	c, client := accepted(t, p.Slots)
	p.sync(func() { p.Submit(c) })
	wantTurnedAway(t, client)
	await(t, "its pool has ended", func() (ended bool) { p.sync(func() { ended = p.ended }); return ended })
}

// TestQueueAtDrain checks that when the gateway stops, waiting connections are
// closed immediately, and so are connections that arrive later.
func TestQueueAtDrain(t *testing.T) {
	p, log := idle(t, time.Hour)
	before, firstClient := accepted(t, p.Slots)
	p.sync(func() { p.Submit(before) })
	p.sync(p.drain)
	after, secondClient := accepted(t, p.Slots)
	p.sync(func() { p.Submit(after) })
	for _, c := range []*os.File{firstClient, secondClient} {
		wantTurnedAway(t, c)
	}
	if strings.Count(log.String(), "the gateway is stopping") != 2 || p.Slots.held() != 0 {
		t.Errorf("%d slots taken; logged:\n%s", p.Slots.held(), log)
	}
}

// TestStaleDeadline checks a connection that leaves the queue just before its
// deadline and is then queued again. The first deadline must have no effect on
// the second wait.
func TestStaleDeadline(t *testing.T) {
	p, _ := idle(t, time.Hour)
	c, _ := accepted(t, p.Slots)
	expired := func(*Connection) { t.Error("it expired") }
	p.sync(func() {
		p.waiting.Add(p.Loop, c, time.Nanosecond, expired)
		time.Sleep(50 * time.Millisecond) // the timer's event waits for the loop
		p.waiting.takeWhile(func(*Connection) bool { return true })
		p.waiting.Add(p.Loop, c, time.Hour, expired)
	})
	time.Sleep(50 * time.Millisecond)
	p.sync(func() {
		if len(p.waiting.TakeAll()) != 1 {
			t.Error("the connection does not wait")
		}
	})
}

// TestConnectionNumbers checks that no two connections get the same number,
// even in different pools.
func TestConnectionNumbers(t *testing.T) {
	first, log := idle(t, time.Minute)
	second := first.NewPool(first.gen, first.identity)
	seen := map[uint64]bool{}
	for _, p := range []*Pool{first, second, first} {
		parent, _ := channelTo(t)
		w := &worker{Process: &process.Process{Channel: parent}, held: map[uint64]*Connection{}}
		c, _ := accepted(t, p.Slots)
		p.sync(func() { p.offer(w, c) })
		if c.ID == 0 || seen[c.ID] {
			t.Errorf("number %d, after %v: %s", c.ID, seen, log)
		}
		seen[c.ID] = true
	}
}

// TestTries checks a connection whose workers exit before they have taken it. A
// pool of n workers must keep the connection after n such exits, but drop it
// after the next one.
func TestTries(t *testing.T) {
	p, _ := idle(t, time.Minute)
	p.Workers = 2
	c, _ := accepted(t, p.Slots)
	var lost, requeued int
	for i := range uint32(3) {
		parent, _ := channelTo(t)
		w := &worker{Process: &process.Process{Channel: parent, Number: i}, ready: true, held: map[uint64]*Connection{}}
		p.sync(func() {
			if p.workers[i] = w; i == 0 {
				p.Submit(c)
			}
			p.serveWaiting()
			delete(p.workers, i)
			lost, requeued = p.reclaimConns(w)
		})
		if last := i == 2; lost+requeued != 1 || (lost == 1) != last {
			t.Errorf("exit %d: %d connections lost, %d given to another worker", i, lost, requeued)
		}
	}
}

// TestFloodHasBackpressure checks that the pool reads a worker's messages only
// as fast as the pool can handle them. While the pool's loop is busy, the pool
// must read only one message. The other messages must stay in the socket, so
// that the worker can't send any more once the socket is full.
func TestFloodHasBackpressure(t *testing.T) {
	p, _ := idle(t, time.Minute)
	parent, child := channelTo(t)
	w := &worker{Process: &process.Process{Channel: parent}, held: map[uint64]*Connection{}}
	busy, end := make(chan struct{}), make(chan struct{})
	go p.sync(func() { close(busy); <-end })
	<-busy
	ended := make(chan error)
	go func() { ended <- p.receive(w) }()
	sent := 0
	for child.TrySend(&ipc.Pong{Number: 1}) == nil {
		sent++
	}
	time.Sleep(100 * time.Millisecond)
	for child.TrySend(&ipc.Pong{Number: 1}) == nil {
		sent++
	}
	var unread int
	err := child.WithFD(func(fd int) (err error) { unread, err = unix.IoctlGetInt(fd, unix.SIOCOUTQ); return err })
	if err != nil || unread == 0 || sent > 10_000 {
		t.Errorf("%d messages were read before the first was handled; %d bytes wait, %v", sent, unread, err)
	}
	close(end)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "Pong") {
		t.Errorf("the worker ended with %v", err)
	}
}

// TestShare checks that the parts that share returns add up to the whole.
func TestShare(t *testing.T) {
	for whole := range 20 {
		for n := 1; n < 8; n++ {
			sum := 0
			for i := range n {
				sum += share(whole, n, i)
			}
			if sum != whole {
				t.Errorf("%d in %d parts: they add up to %d", whole, n, sum)
			}
		}
	}
}
