package spawn

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/exitstatus"
	"schedrestd/ipc"
	"schedrestd/security"
)

// TestProgramIsOutOfTheWay checks that a child never overwrites the descriptor
// of its program with another of its descriptors, whatever their numbers are.
func TestProgramIsOutOfTheWay(t *testing.T) {
	program, err := OpenProgram("worker", "/bin/true", WorkerName, security.Identity{}, false)
	if err != nil {
		t.Skip(err)
	}
	defer program.Close()
	s, err := New(Options{Plain: true, Worker: program})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	for minFD := range 100 { // the pipe that reports a failed start gets the lowest free number, which is usually below fd
		fd, err := unix.FcntlInt(program.Fd(), unix.F_DUPFD_CLOEXEC, minFD)
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.start(Spec{Role: ipc.Worker, Program: program, Argv: []string{"true"}}, fd, fd)
		unix.Close(fd)
		if err != nil {
			t.Fatalf("with descriptor %d beside the program's %d: %v", fd, program.Fd(), err)
		}
		<-p.Exited
	}
}

// TestThreadOfRoot checks that the thread that starts processes passes on only what a
// change of identity needs, from its start: the parent drops capabilities later.
func TestThreadOfRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to pass on capabilities")
	}
	s, err := New(Options{Root: true, Plain: true})
	must(t, err)
	defer s.Stop()
	threads, err := security.ThreadStatus("/proc/self/task")
	must(t, err)
	status := threads[strconv.Itoa(s.threadID)]
	for name, want := range map[string]string{"CapInh": SetIDCapabilities.String(), "CapBnd": security.Capabilities(0).String(), "NoNewPrivs": "1"} {
		if got := status.Value(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// TestDeadBeforeTold checks a process that exits before it receives a message.
// The parent must still detect the exit and get the exit status.
func TestDeadBeforeTold(t *testing.T) {
	program, err := OpenProgram("worker", "/bin/true", WorkerName, security.Identity{}, false)
	if err != nil {
		t.Skip(err)
	}
	defer program.Close()
	s, err := New(Options{Plain: true, Worker: program})
	must(t, err)
	defer s.Stop()
	for range 3 {
		spec := Spec{Role: ipc.Worker, Program: program, Argv: []string{"true"}, Threads: 1, Identity: security.Identity{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}}
		p, err := s.Start(spec, func(uint64) ipc.Message { time.Sleep(10 * time.Millisecond); return new(ipc.Setup) })
		must(t, err)
		if m, err := p.Channel.Receive(); err != io.EOF {
			t.Errorf("%v, %v", m, err)
		}
		if <-p.Exited; exitstatus.Describe(p.Status) != exitstatus.OK {
			t.Error(exitstatus.Describe(p.Status))
		}
		p.Close()
	}
}

// TestTimerSlack checks that processes inherit the timer slack of the Spawner's
// thread. A program could not set the slack in time itself, because Go's
// runtime starts its first threads before the program's own code runs.
func TestTimerSlack(t *testing.T) {
	program, err := OpenProgram("worker", "/bin/cat", WorkerName, security.Identity{}, false)
	if err != nil {
		t.Skip(err)
	}
	defer program.Close()
	s, err := New(Options{Plain: true, Worker: program})
	must(t, err)
	defer s.Stop()
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	p, err := s.start(Spec{Role: ipc.Worker, Program: program, Argv: []string{"cat", "/proc/self/timerslack_ns"}, Out: w},
		int(s.null.Fd()), int(s.null.Fd()))
	w.Close()
	must(t, err)
	text, err := io.ReadAll(r)
	if <-p.Exited; err != nil || string(text) != fmt.Sprintln(timerSlack) {
		t.Errorf("%q, %v", text, err)
	}
}

// TestNextIsNotLessConfined checks that NewReplacement returns an error if the
// new Spawner would confine processes less than its predecessor.
func TestNextIsNotLessConfined(t *testing.T) {
	program, err := OpenProgram("worker", "/bin/true", WorkerName, security.Identity{}, false)
	if err != nil {
		t.Skip(err)
	}
	defer program.Close()
	o := Options{Plain: true, Worker: program}
	for name, change := range map[string]func(*Spawner){
		"as confined":   func(*Spawner) {},
		"less confined": func(s *Spawner) { s.setState(ownRoot, nil) },
	} {
		s, err := New(o)
		must(t, err)
		change(s)
		next, err := s.NewReplacement()
		if less := name == "less confined"; less != (err != nil) || less != (next == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if next != nil {
			next.Stop()
		}
		s.Stop()
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
