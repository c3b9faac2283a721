package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ctld/failpoint"
	"schedrestd/ctld/process"
)

// Names under which this program is executed again. They are not a secret: who uses them by
// hand runs a program with his own rights that finds no job to run.
const (
	watchName = "schedctld-step"
	startName = "schedctld-start"
)

// Descriptors of both stages, after the three standard ones.
const (
	specFD   = 3
	reportFD = 4
	firstFD  = 10 // descriptors to hand over are moved up to here, clear of the above
)

// stageEnv is the environment of both stages: a stage needs few threads, and no descriptors on the
// files of its CPU limit.
var stageEnv = []string{"GOMAXPROCS=1", "GODEBUG=containermaxprocs=0"}

// Main runs a stage of a step when this process was started as one, and then
// does not return. It must come first in main, before anything is read or opened.
func Main() {
	stage, ok := map[string]func() int{watchName: watchMain, startName: startMain}[os.Args[0]]
	if !ok {
		return
	}
	runtime.LockOSThread() // for good: see watchMain and leaveKeyring
	if err := isolate(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(stage())
}

// Program is the executable of this process, held open: steps are started from it even
// when its path has been replaced, or can't be entered by the job's user.
type Program struct{ fd int }

// OpenProgram opens this process's own executable.
func OpenProgram() (*Program, error) {
	f, err := os.OpenFile("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0) // it may be executable and not readable
	if err != nil {
		return nil, fmt.Errorf("open own program: %w", err)
	}
	defer f.Close()
	fd, err := lift(f)
	if err != nil {
		return nil, fmt.Errorf("open own program: %w", err)
	}
	return &Program{fd}, nil
}

// lift duplicates f to a number of firstFD or above, so that placing descriptors
// 0 to 4 in a child can't overwrite it.
func lift(f *os.File) (int, error) {
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, firstFD)
}

func (p *Program) path() string { return "/proc/self/fd/" + strconv.Itoa(p.fd) }

// Close closes the executable. Steps that run are not concerned.
func (p *Program) Close() error { return unix.Close(p.fd) }

// Step is a running step process, as its controller holds it.
type Step struct {
	Claim  Claim
	handle *process.Handle
	child  int // its number when it is our child and must be waited for, else 0
}

// reportLimit is how long a step may take to claim its job, which includes
// writing to the disk.
var reportLimit = time.Minute

// Start starts a step for spec, whose Home must be prepared, and returns when it has claimed
// the job. A step that does not report in time is killed. log takes what the step has to say to an administrator. The error is ErrTaken
// when another step has the job; it then may be adopted.
func (p *Program) Start(spec *Spec, log *os.File) (*Step, error) {
	b, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	memory, err := sealed("job", b)
	if err != nil {
		return nil, err
	}
	defer memory.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	pid, pidfd, err := p.spawn(spec.Job, memory, write, log)
	write.Close()
	if err != nil {
		return nil, fmt.Errorf("start step: %w", err)
	}
	// The step closes its end when it has claimed, or says why it could not.
	failpoint.Here("spawned")
	err = read.SetReadDeadline(time.Now().Add(reportLimit))
	var text []byte
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(read, 4096))
	}
	s := &Step{handle: process.Hold(pidfd), child: pid}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errors.Join(fmt.Errorf("no report within %s", reportLimit), s.handle.Signal(syscall.SIGKILL))
	}
	if err != nil || len(text) > 0 {
		s.Wait(context.Background())
		s.Close()
		if string(text) == ErrTaken.Error() {
			return nil, ErrTaken
		}
		if err == nil {
			err = errors.New(string(text))
		}
		return nil, fmt.Errorf("start step: %w", err)
	}
	c, ok, err := ReadClaim(spec.Home)
	switch {
	case err != nil: // it has the job all the same
		c.Started = time.Now()
		c.Step, err = process.Of(pid)
	case !ok:
		err = errors.New("it died before it claimed the job")
	case c.Step.PID != pid:
		err = ErrTaken
	}
	if err != nil {
		s.Wait(context.Background())
		s.Close()
		return nil, fmt.Errorf("start step: %w", err)
	}
	s.Claim = c
	return s, nil
}

// spawn executes the first stage: a session of its own, no terminal, no environment of
// ours, nothing inherited but what it needs.
func (p *Program) spawn(job uint32, spec, report, log *os.File) (pid, pidfd int, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, 0, err
	}
	defer null.Close()
	files, err := place(null, null, log, spec, report)
	defer closeAll(files)
	if err != nil {
		return 0, 0, err
	}
	pid, err = syscall.ForkExec(p.path(), []string{watchName, strconv.FormatUint(uint64(job), 10)}, &syscall.ProcAttr{
		Dir:   "/",
		Env:   append(stageEnv, failpoint.Env()...),
		Files: files,
		Sys:   &syscall.SysProcAttr{Setsid: true, PidFD: &pidfd},
	})
	return pid, pidfd, err
}

// place duplicates files so that none is in the way of its final number.
func place(files ...*os.File) ([]uintptr, error) {
	var fds []uintptr
	for _, f := range files {
		fd, err := lift(f)
		if err != nil {
			return fds, err
		}
		fds = append(fds, uintptr(fd))
	}
	return fds, nil
}

func closeAll(fds []uintptr) {
	for _, fd := range fds {
		unix.Close(int(fd))
	}
}

// Adopt takes hold of the step of an earlier controller. The error is process.ErrGone when it
// has ended: the outcome, if there is one, is final then.
func Adopt(c Claim) (*Step, error) {
	h, err := c.Step.Open()
	if err != nil {
		return nil, err
	}
	return &Step{Claim: c, handle: h}, nil
}

// Wait returns nil when the step has ended, or ctx's error.
func (s *Step) Wait(ctx context.Context) error {
	if err := s.handle.Wait(ctx); err != nil {
		return err
	}
	if s.child != 0 {
		_, err := syscall.Wait4(s.child, nil, 0, nil) // ended: returns at once
		s.child = 0
		return err
	}
	return nil
}

// Cancel asks the step to end its job: SIGTERM to all of it, SIGKILL after Spec.KillWait.
func (s *Step) Cancel() error { return s.handle.Signal(syscall.SIGTERM) }

// Signal asks the step to send sig, 1 to 30, to all processes of its job.
func (s *Step) Signal(sig syscall.Signal) error {
	if sig < 1 || sig > lastSignal {
		return fmt.Errorf("signal %d can't be sent to a job", sig)
	}
	return s.handle.Signal(forwarded + sig)
}

// A signal for the job goes to the step as the real-time signal so many above it, which
// the kernel queues and which the step can't confuse with one meant for itself.
const (
	forwarded  = syscall.Signal(34)
	lastSignal = syscall.Signal(30)
)

// Close lets go of the step, which runs on.
func (s *Step) Close() error { return s.handle.Close() }
