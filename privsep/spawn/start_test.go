package spawn

import (
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/privsep/relay"
	"schedrestd/security"
)

// TestProgramIsOutOfTheWay: whatever numbers descriptors have, a child puts none of its own in the place
// of the program that it is about to execute.
func TestProgramIsOutOfTheWay(t *testing.T) {
	program, err := OpenWorker("/bin/true", security.Identity{}, false)
	if err != nil {
		t.Skip(err)
	}
	defer program.Close()
	s, err := New(Options{sharedRoot: true, OneClient: true, Worker: program, Output: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	for least := range 100 { // the pipe by which the start hears of a failure is below, in a gap
		fd, err := unix.FcntlInt(program.Fd(), unix.F_DUPFD_CLOEXEC, least)
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.start(Birth{Role: ipc.Worker, Program: program, Argv: []string{"true"}}, fd, fd)
		unix.Close(fd)
		if err != nil {
			t.Fatalf("with descriptor %d beside the program's %d: %v", fd, program.Fd(), err)
		}
		<-p.Dead
		p.PIDFD.Close()
	}
}

// TestDeadBeforeTold: the exit of a process before it receives anything is
// detected, with its status, whichever code started it.
func TestDeadBeforeTold(t *testing.T) {
	program, err := OpenWorker("/bin/true", security.Identity{}, false)
	if err != nil {
		t.Skip(err)
	}
	defer program.Close()
	s, err := New(Options{sharedRoot: true, OneClient: true, Worker: program, Output: io.Discard})
	must(t, err)
	defer s.Stop()
	for what, wait := range map[string]func(*Process){
		"dead":                   func(p *Process) { <-p.Dead },
		"dead, and given up too": func(p *Process) { <-p.Dead; p.Channel.Close() },
	} {
		born := Birth{Role: ipc.Worker, Program: program, Argv: []string{"true"}, Threads: 1, Who: security.Identity{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}}
		p, err := s.Start(born, relay.NewQuota(1, 1), func(p *Process, _ uint64) ipc.Message { wait(p); return new(ipc.Setup) })
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if m, err := p.Channel.Receive(); err != io.EOF {
			t.Errorf("%s: %v, %v", what, m, err)
		}
		if status := p.Reap(patience); status != "exit status 0" {
			t.Errorf("%s: %s", what, status)
		}
	}
}

// TestCrash: which ends of a worker are a fault of its own.
func TestCrash(t *testing.T) {
	exited := func(status int) unix.WaitStatus { return unix.WaitStatus(status << 8) }
	for _, tt := range []struct {
		name string
		ws   unix.WaitStatus
		want bool
	}{
		{"killed by the administrator or for want of memory", unix.WaitStatus(unix.SIGKILL), false},
		{"told to end", unix.WaitStatus(unix.SIGTERM), false},
		{"done", exited(0), false},
		{"without a parent", exited(1), false},
		{"a panic", exited(2), true},
		{"a wild pointer", unix.WaitStatus(unix.SIGSEGV), true},
		{"a call that is not allowed", unix.WaitStatus(unix.SIGSYS), true},
		{"an abort", unix.WaitStatus(unix.SIGABRT), true},
	} {
		if got := isCrash(tt.ws); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

// TestNextIsNotLessConfined: no spawner follows one whose processes are more confined.
func TestNextIsNotLessConfined(t *testing.T) {
	program, err := OpenWorker("/bin/true", security.Identity{}, false)
	if err != nil {
		t.Skip(err)
	}
	defer program.Close()
	o := Options{sharedRoot: true, OneClient: true, Worker: program, Output: io.Discard}
	for what, change := range map[string]func(*Spawner){
		"as confined":   func(*Spawner) {},
		"less confined": func(s *Spawner) { s.layers[ownRoot] = found(nil) },
	} {
		s, err := New(o)
		must(t, err)
		change(s)
		next, err := s.Next()
		if less := what == "less confined"; less != (err != nil) || less != (next == nil) {
			t.Errorf("%s: %v", what, err)
		}
		if again, _ := s.Next(); again != next {
			t.Errorf("%s: two follow", what)
		}
		s.Stop()
	}
}

const patience = 10 * time.Second

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
