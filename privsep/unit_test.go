package privsep

import (
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/security"
)

func TestPauseGrows(t *testing.T) {
	if pause(0) != 0 {
		t.Error("a worker that did its work is replaced at once")
	}
	for n := 1; n < 100; n++ {
		if pause(n+1) < pause(n) || pause(n) <= 0 || pause(n) > 30*time.Second {
			t.Errorf("after %d failures %s, then %s", n, pause(n), pause(n+1))
		}
	}
}

// sync has the loop call f, and waits for its end.
func (l *loop) sync(f func()) { _ = l.call(func() error { f(); return nil }) }

// running returns the slots of c, whose loop runs until the end of the test.
func running(t *testing.T, c Config) *slots {
	t.Helper()
	l := newLoop()
	s := newSlots(c, l)
	s.admit = func(*connection) {}
	go l.run()
	t.Cleanup(l.stop)
	return s
}

// idle makes a pool that has no worker, and so can take nothing from its queue.
func idle(t *testing.T, limit time.Duration) (p *pool, log *syncBuffer) {
	t.Helper()
	log = new(syncBuffer)
	c := Config{Connections: 3, HandLimit: limit, Log: slog.New(slog.NewTextHandler(log, nil))}
	s := running(t, c)
	return newPool(means{loop: s.loop, slots: s, pools: newPools()}, newGeneration(c), self().Identity), log
}

// accepted is a connection with a slot, and its client's end.
func accepted(t *testing.T, s *slots) (*connection, *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	client := os.NewFile(uintptr(fds[0]), "client")
	t.Cleanup(func() { client.Close() })
	c := &connection{fd: fds[1]}
	before := s.held()
	if s.sync(func() { s.arrive(c) }); s.held() == before {
		t.Fatal("no slot is free")
	}
	return c, client
}

// turnedAway waits until a connection is closed that no worker serves. With no worker
// there is no answer either.
func turnedAway(t *testing.T, client io.Reader) {
	t.Helper()
	if b, err := io.ReadAll(client); err != nil || len(b) > 0 {
		t.Errorf("read %q, %v", b, err)
	}
}

// TestQueueDeadline: with no worker in sight a connection waits for its time and is then
// closed, counted and logged, its slot is free; and whoever brings it does not wait.
func TestQueueDeadline(t *testing.T) {
	p, log := idle(t, 50*time.Millisecond)
	var clients []*os.File
	for range 3 {
		c, client := accepted(t, p.slots)
		p.sync(func() { p.take(c) })
		clients = append(clients, client)
	}
	for _, c := range clients {
		turnedAway(t, c)
	}
	await(t, "the slots are free", func() bool { return p.slots.held() == 0 })
	await(t, "the log counts three", func() bool { return strings.Contains(log.String(), "unserved_so_far=3") })
}

// TestDeadlineOfTheOnlyOne: a pool that was made for one connection ends when that is turned away, and
// with it the worker that was to serve it.
func TestDeadlineOfTheOnlyOne(t *testing.T) {
	p, _ := idle(t, 50*time.Millisecond)
	p.lazy, p.once = true, true
	c, client := accepted(t, p.slots)
	p.sync(func() { p.take(c) })
	turnedAway(t, client)
	await(t, "its pool has ended", func() (over bool) { p.sync(func() { over = p.over }); return over })
}

// TestQueueAtDrain: what waits when the gateway stops, and what comes after, is closed at once.
func TestQueueAtDrain(t *testing.T) {
	p, log := idle(t, time.Hour)
	before, one := accepted(t, p.slots)
	p.sync(func() { p.take(before) })
	p.sync(p.drain)
	after, other := accepted(t, p.slots)
	p.sync(func() { p.take(after) })
	for _, c := range []*os.File{one, other} {
		turnedAway(t, c)
	}
	if strings.Count(log.String(), "the gateway stops") != 2 || p.slots.held() != 0 {
		t.Errorf("%d slots taken; logged:\n%s", p.slots.held(), log)
	}
}

// TestDropsAreLimited: clients who come in masses don't fill the disk with lines about them.
func TestDropsAreLimited(t *testing.T) {
	log := new(syncBuffer)
	s := running(t, Config{Connections: 1, Log: slog.New(slog.NewTextHandler(log, nil))})
	for range 2000 {
		c, client := accepted(t, s)
		s.sync(func() { s.drop(c, statusUnavailable, "of this test") })
		client.Close()
	}
	if n := strings.Count(log.String(), "\n"); n < 50 || n > 1000 || s.unserved.n != 2000 {
		t.Errorf("%d lines about %d", n, s.unserved.n)
	}
}

func (s *slots) held() (n int) {
	s.sync(func() { n = s.Stats().Held })
	return n
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

// self is this process as the one that serves.
func self() service {
	return service{Identity: security.Identity{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}, root: os.Geteuid() == 0}
}

// room is a directory of this test's own that others can reach.
func room(t *testing.T) string {
	t.Helper()
	return socketDir(t, t.TempDir(), nil)
}

// TestUnixSocketOptions: who may connect to a UNIX socket depends on what is served.
func TestUnixSocketOptions(t *testing.T) {
	group := uint32(44)
	for name, tt := range map[string]struct {
		config   Config
		mode     fs.FileMode
		uid, gid uint32
	}{
		"local alone": {Config{Setup: ipc.Setup{Local: true}}, 0o600, 7, 8},
		"tokens":      {Config{Setup: ipc.Setup{Local: true, JWT: true}}, 0o666, 7, 8},
		"as set":      {Config{Setup: ipc.Setup{JWT: true}, SocketMode: 0o660, SocketGroup: &group}, 0o660, 7, 44},
		"become_user": {Config{Setup: ipc.Setup{Local: true}, Switches: ipc.Switches{BecomeUser: true}}, 0o666, 0, 0},
	} {
		o := tt.config.listenOptions(service{Identity: security.Identity{UID: 7, GID: 8}}).Unix
		if o.Mode != tt.mode || o.Owner.UID != tt.uid || o.Owner.GID != tt.gid {
			t.Errorf("%s: mode %o of %+v", name, o.Mode, *o.Owner)
		}
	}
}
