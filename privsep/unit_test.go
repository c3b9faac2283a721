package privsep

import (
	"bufio"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
)

func TestPrintable(t *testing.T) {
	tests := []struct{ in, want string }{
		{"plain, ünïcödé 日本", "plain, ünïcödé 日本"},
		{"\x1b[2J", `\x1b[2J`},
		{"a\nb\r\tc\x00", `a\nb\r\tc\x00`},
		{"\u202e\u200b\ufeff", `\u202e\u200b\ufeff`},
		{"\xff\xfe", `\xff\xfe`},
		{strings.Repeat("x", maxLine+5), strings.Repeat("x", maxLine) + "…"},
	}
	for _, tt := range tests {
		if got := printable(tt.in); got != tt.want {
			t.Errorf("%q became %q, want %q", tt.in, got, tt.want)
		}
	}
}

// FuzzPrintable: whatever a worker writes, a terminal shows it as text, and not for long.
func FuzzPrintable(f *testing.F) {
	for _, s := range []string{"", "a", "\x1b]0;t\x07", "\xf0\x28\x8c\x28", "\u2028", "<4>text"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := printable(s)
		if len(got) > maxLine+16 {
			t.Fatalf("%d bytes out of %d", len(got), len(s))
		}
		for _, r := range got {
			if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
				t.Fatalf("%q lets %U through", s, r)
			}
		}
	})
}

func TestReadLine(t *testing.T) {
	in := bufio.NewReaderSize(strings.NewReader("a\n\n"+strings.Repeat("x", 3*maxLine)+"\nlast"), maxLine)
	want := []string{"a", "", strings.Repeat("x", maxLine), "last"}
	for _, w := range want {
		if got, _ := readLine(in); got != w {
			t.Errorf("got %.20q (%d), want %.20q (%d)", got, len(got), w, len(w))
		}
	}
	if _, err := readLine(in); err == nil {
		t.Error("no end")
	}
}

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

// TestProgramIsOutOfTheWay: whatever numbers descriptors have, a child puts none of its own in the place
// of the program that it is about to execute.
func TestProgramIsOutOfTheWay(t *testing.T) {
	program, err := openProgram("/bin/true", service{})
	if err != nil {
		t.Skip(err)
	}
	defer program.Close()
	s, err := startSpawner(Config{SharedRoot: true, Setup: ipc.Setup{Inetd: true}}, service{}, program, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	for least := range 100 { // the pipe by which the start hears of a failure is below, in a gap
		fd, err := unix.FcntlInt(program.Fd(), unix.F_DUPFD_CLOEXEC, least)
		if err != nil {
			t.Fatal(err)
		}
		pid, pidfd, err := s.start(birth{role: ipc.Worker, program: program, argv: []string{"true"}}, fd, fd)
		unix.Close(fd)
		if err != nil {
			t.Fatalf("with descriptor %d beside the program's %d: %v", fd, program.Fd(), err)
		}
		unix.Close(pidfd)
		_, _ = syscall.Wait4(pid, nil, 0, nil)
	}
}

// TestDeadBeforeTold: who dies before he can be told anything is heard to have died, and how, whoever had him started.
func TestDeadBeforeTold(t *testing.T) {
	program, err := openProgram("/bin/true", service{})
	if err != nil {
		t.Skip(err)
	}
	defer program.Close()
	s, err := startSpawner(Config{SharedRoot: true, Setup: ipc.Setup{Inetd: true}}, service{}, program, nil)
	must(t, err)
	defer s.stop()
	c := Config{Log: slog.New(slog.DiscardHandler)}
	for what, wait := range map[string]func(*process){
		"dead":                   func(p *process) { <-p.dead },
		"dead, and given up too": func(p *process) { <-p.dead; p.channel.Close() },
	} {
		born := birth{role: ipc.Worker, program: program, argv: []string{"true"}, threads: 1, who: self().Identity}
		p, err := s.employ(born, c, newQuota(c), func(p *process, _ uint64) ipc.Message { wait(p); return new(ipc.Setup) })
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if m, err := p.channel.Receive(); err != io.EOF {
			t.Errorf("%s: %v, %v", what, m, err)
		}
		if status := p.bury(patience); status != "exit status 0" {
			t.Errorf("%s: %s", what, status)
		}
	}
}

// idle makes a pool that has no worker, and so can take nothing from its queue.
func idle(t *testing.T, limit time.Duration) (p *pool, log *syncBuffer) {
	t.Helper()
	log = new(syncBuffer)
	c := Config{Connections: 3, HandLimit: limit, Log: slog.New(slog.NewTextHandler(log, nil))}
	return newPool(means{slots: newSlots(c)}, c, self().Identity), log
}

// accepted is a connection with a slot, and its client's end.
func accepted(t *testing.T, s *slots) (*connection, *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	client := os.NewFile(uintptr(fds[0]), "client")
	t.Cleanup(func() { client.Close() })
	c := &connection{fd: fds[1]}
	if !s.enter(c) {
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
		p.take(c)
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
	p.take(c)
	turnedAway(t, client)
	select {
	case <-p.quit:
	case <-time.After(patience):
		t.Error("it goes on, for nobody")
	}
}

// TestQueueAtDrain: what waits when the gateway stops, and what comes after, is closed at once.
func TestQueueAtDrain(t *testing.T) {
	p, log := idle(t, time.Hour)
	before, one := accepted(t, p.slots)
	p.take(before)
	p.drain()
	after, other := accepted(t, p.slots)
	p.take(after)
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
	s := newSlots(Config{Connections: 1, Log: slog.New(slog.NewTextHandler(log, nil))})
	for range 2000 {
		c, client := accepted(t, s)
		s.drop(c, statusUnavailable, "of this test")
		client.Close()
	}
	if n := strings.Count(log.String(), "\n"); n < 50 || n > 1000 || s.unserved.n != 2000 {
		t.Errorf("%d lines about %d", n, s.unserved.n)
	}
}

func (s *slots) held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Stats().Held
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
