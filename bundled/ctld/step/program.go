package step

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/bundled/ctld/failpoint"
	"schedrestd/bundled/ctld/process"
	"schedrestd/internal/closeonexec"
)

// This program executes itself under these names. The names need not be secret:
// if a user runs the program under one of them, it finds no job to run.
const (
	watchName = "schedctld-step"
	startName = "schedctld-start"
)

// Both stages of a step have the descriptors specFD and reportFD, in addition
// to the three standard ones.
const (
	specFD   = 3
	reportFD = 4
	firstFD  = 10 // descriptors for a child are first duplicated to this number or a higher one
)

// stageEnv is the environment of both stages of a step. GOMAXPROCS is 1 because
// a stage needs few threads. Without containermaxprocs=0, the Go runtime would
// keep open the cgroup files from which it reads its CPU limit.
var stageEnv = []string{"GOMAXPROCS=1", "GODEBUG=containermaxprocs=0"}

// Main checks whether this process was started as a stage of a step. If so,
// Main runs that stage and then exits. Otherwise it returns. The program's main
// function must call Main before it opens any file.
func Main() {
	stage, ok := map[string]func() int{watchName: watchMain, startName: startMain}[os.Args[0]]
	if !ok {
		return
	}
	runtime.LockOSThread() // permanently: see watchMain and leaveKeyring
	if err := closeonexec.Mark(); err != nil {
		fmt.Fprintln(os.Stderr, "mark descriptors close-on-exec:", err)
		os.Exit(1)
	}
	os.Exit(stage())
}

// A Program keeps the executable of this process open. So steps can be started
// even if another file has replaced the executable at its path.
type Program struct{ fd int }

// OpenProgram opens this process's own executable.
func OpenProgram() (*Program, error) {
	// O_PATH works even if the file is executable but not readable.
	f, err := os.OpenFile("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open own program: %w", err)
	}
	defer f.Close()
	fd, err := dupFD(f)
	if err != nil {
		return nil, fmt.Errorf("open own program: %w", err)
	}
	return &Program{fd}, nil
}

// dupFD duplicates f. The duplicate's number is firstFD or higher. The child's
// descriptors 0 to 4 are set up later, and must not replace this duplicate.
func dupFD(f *os.File) (int, error) {
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, firstFD)
}

func (p *Program) path() string { return "/proc/self/fd/" + strconv.Itoa(p.fd) }

// Close closes the executable. Running steps are not affected.
func (p *Program) Close() error { return unix.Close(p.fd) }

// A Step represents a running step process in its controller.
type Step struct {
	Claim    Claim
	handle   *process.Handle
	childPID int // process id of the step if Wait must reap it as a child, otherwise 0
}

// claimTimeout limits how long a step may take to claim its job. This includes
// the time for writing the claim to disk.
var claimTimeout = time.Minute

// Start starts a step for spec, and returns when the step has claimed the job.
// The caller must have called Prepare for the directory spec.Home. If the step
// does not claim the job within claimTimeout, Start kills the step. The step
// writes messages for administrators to the file log. If another step has
// claimed the job, Start returns ErrClaimed, and the caller can adopt that
// other step.
func (p *Program) Start(spec *Spec, log *os.File) (*Step, error) {
	b, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	specFile, err := sealedFile("job", b)
	if err != nil {
		return nil, err
	}
	defer specFile.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	pid, pidfd, err := p.spawn(spec.Job, specFile, write, log)
	write.Close()
	if err != nil {
		return nil, fmt.Errorf("start step: %w", err)
	}
	// The step writes a report when it has claimed the job or has failed to.
	failpoint.Here("spawned")
	err = read.SetReadDeadline(time.Now().Add(claimTimeout))
	var claim Claim
	if err == nil {
		claim, err = readClaimReport(read)
	}
	s := &Step{Claim: claim, handle: process.NewHandle(pidfd), childPID: pid}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("no report within %s", claimTimeout)
	}
	if err != nil {
		_ = s.handle.Signal(syscall.SIGKILL) // usually it is exiting by itself
		s.Wait(context.Background())
		s.Close()
		if errors.Is(err, ErrClaimed) {
			return nil, ErrClaimed
		}
		return nil, fmt.Errorf("start step: %w", err)
	}
	return s, nil
}

// A claimReport is what the first stage tells Start, as JSON. The claim is part
// of the report, so that Start need not read the claim's file, which could fail.
type claimReport struct {
	Claim   *Claim        `json:"claim,omitempty"`
	Claimed bool          `json:"claimed,omitempty"` // another step has claimed the job
	Error   string        `json:"error,omitempty"`
	Errno   syscall.Errno `json:"errno,omitempty"` // of the error; 0: unknown
}

// maxClaimReport limits the length of a claimReport in bytes.
const maxClaimReport = 16 << 10

// writeClaimReport reports the claim, or the error that prevented it.
func writeClaimReport(pipe io.Writer, claim Claim, err error) error {
	r := claimReport{Claim: &claim}
	if err != nil {
		r = claimReport{Claimed: errors.Is(err, ErrClaimed), Error: fmt.Sprintf("%.1000s", err)}
		errors.As(err, &r.Errno)
	}
	return json.NewEncoder(pipe).Encode(r)
}

// readClaimReport reads what writeClaimReport writes.
func readClaimReport(pipe io.Reader) (Claim, error) {
	b, err := io.ReadAll(io.LimitReader(pipe, maxClaimReport))
	if err != nil {
		return Claim{}, err
	}
	var r claimReport
	switch err := json.Unmarshal(b, &r); {
	case err != nil || r.Claim == nil && r.Error == "": // for example, the kernel has killed the step
		return Claim{}, errors.New("step exited before it claimed the job")
	case r.Claimed:
		return Claim{}, ErrClaimed
	case r.Claim == nil:
		return Claim{}, &reportedError{r.Error, r.Errno}
	}
	return *r.Claim, nil
}

// A reportedError is an error of another process.
type reportedError struct {
	text  string
	errno syscall.Errno // 0: unknown
}

func (e *reportedError) Error() string { return e.text }

// Is reports whether target is the error's number.
func (e *reportedError) Is(target error) bool {
	errno, ok := target.(syscall.Errno)
	return ok && errno != 0 && errno == e.errno
}

// As sets target to the error's number.
func (e *reportedError) As(target any) bool {
	errno, ok := target.(*syscall.Errno)
	if ok = ok && e.errno != 0; ok {
		*errno = e.errno
	}
	return ok
}

// spawn executes the first stage in a new session. The stage has no terminal,
// none of the controller's environment, and only the descriptors that it needs.
func (p *Program) spawn(job uint32, spec, report, log *os.File) (pid, pidfd int, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, 0, err
	}
	defer null.Close()
	files, err := dupFDs(null, null, log, spec, report)
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

// dupFDs duplicates files. The duplicates have numbers that differ from the
// numbers that the files get in the child.
func dupFDs(files ...*os.File) ([]uintptr, error) {
	var fds []uintptr
	for _, f := range files {
		fd, err := dupFD(f)
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

// Adopt attaches to a step that an earlier controller started. If that step has
// exited, Adopt returns process.ErrGone. In this case the step can no longer
// write an outcome, so a missing outcome will not appear later.
func Adopt(c Claim) (*Step, error) {
	h, err := c.Step.Open()
	if err != nil {
		return nil, err
	}
	return &Step{Claim: c, handle: h}, nil
}

// Wait waits until the step has exited, and then returns nil. If ctx is done
// first, Wait returns ctx's error.
func (s *Step) Wait(ctx context.Context) error {
	if err := s.handle.Wait(ctx); err != nil {
		return err
	}
	if s.childPID != 0 {
		_, err := syscall.Wait4(s.childPID, nil, 0, nil) // the child has exited, so this returns at once
		s.childPID = 0
		return err
	}
	return nil
}

// Cancel asks the step to end its job. The step sends SIGTERM to all processes
// of the job. After Spec.KillWait it sends SIGKILL.
func (s *Step) Cancel() error { return s.handle.Signal(syscall.SIGTERM) }

// SetTimeLimit writes a new time limit to a file in the directory home of a
// step. The limit counts from the start of the job. The step does not read the
// file until ReloadTimeLimit is called.
func SetTimeLimit(home string, limit time.Duration) error {
	return replaceFile(home, "limit", Limit{limit})
}

// ReloadTimeLimit makes the step read its new time limit. The step's claim must
// be Adjustable.
func (s *Step) ReloadTimeLimit() error { return s.handle.Signal(limitChanged) }

// limitChanged is the signal that announces a new time limit.
const limitChanged = syscall.SIGUSR1

// Signal asks the step to send the signal sig to all processes of its job. The
// number of the signal must be in the range 1 to 30.
func (s *Step) Signal(sig syscall.Signal) error {
	if sig < 1 || sig > lastSignal {
		return fmt.Errorf("signal %d can't be sent to a job", sig)
	}
	return s.handle.Signal(signalOffset + sig)
}

// SignalScript sends the signal sig to the process that runs the job's script, and
// to no other process. This is the child of the step that started first: the step
// has no other children but orphans of processes that the script has started.
func (s *Step) SignalScript(sig syscall.Signal) error {
	list, err := process.Descendants(s.Claim.Step.PID)
	if err != nil {
		return err
	}
	if err := s.handle.Signal(0); err != nil {
		return err // the step has exited, so the list may be that of another process with its id
	}
	list = slices.DeleteFunc(list, func(st process.Stat) bool { return st.Parent != s.Claim.Step.PID })
	if len(list) == 0 {
		return process.ErrGone
	}
	script := slices.MinFunc(list, func(a, b process.Stat) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.PID, b.PID)) })
	_, err = process.SignalAll([]process.Stat{script}, sig)
	return err
}

// To send a signal to the job, the controller sends a real-time signal to the
// step. The number of the real-time signal is signalOffset plus the number of
// the signal for the job. There are two reasons for real-time signals: the
// kernel queues them, and the step can't confuse them with signals for the step
// itself.
const (
	signalOffset = syscall.Signal(34)
	lastSignal   = syscall.Signal(30)
)

// Close detaches from the step, which continues.
func (s *Step) Close() error { return s.handle.Close() }
