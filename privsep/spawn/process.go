package spawn

import (
	"cmp"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/security"
)

// Process is a child of the spawner, a worker or the keeper, as the parent sees it.
type Process struct {
	Number  uint32
	Who     security.Identity
	PID     int
	PIDFD   *os.File // non-blocking: the poller waits for the death, no thread does
	Channel *ipc.Channel
	log     *os.File      // reading end of its fd 2
	exit    chan string   // gets how the process ended
	Caged   bool          // by a system call that its cage kills for; set before exit gets that
	Crashed bool          // by a fault of its own, caged included; likewise
	Dead    chan struct{} // closed when it has
	silent  chan struct{} // closed when all that it logged was read
	Started time.Time
	Ending  string // why the parent ended it; "" when it ended by itself. Guarded by the lock of whose process it is
}

// Birth is what a process is started with.
type Birth struct {
	Role    ipc.Role
	Program *os.File
	Argv    []string
	Threads int    // that run at one time
	Files   uint64 // limit of open descriptors
	Who     security.Identity
}

// launch starts a process with a channel and a log of its own; room bounds what it may log.
func (s *Spawner) launch(b Birth, room *Quota) (*Process, error) {
	channel, theirs, err := ipc.Pair(ipc.Parent, b.Role)
	if err != nil {
		return nil, err
	}
	defer unix.Close(theirs) // a copy kept here would hide the death
	logRead, logWrite, err := Pipe()
	if err != nil {
		channel.Close()
		return nil, err
	}
	defer unix.Close(logWrite)
	p := &Process{Number: s.number.Add(1), Who: b.Who, Channel: channel, log: logRead, Started: time.Now(),
		exit: make(chan string, 1), Dead: make(chan struct{}), silent: make(chan struct{})}
	pid, pidfd, err := s.start(b, theirs, logWrite)
	if err != nil {
		channel.Close()
		logRead.Close()
		return nil, err
	}
	_ = unix.SetNonblock(pidfd, true)
	p.PID, p.PIDFD = pid, os.NewFile(uintptr(pidfd), b.Role.String())
	go func() {
		p.wait()
		close(p.Dead)
		// A process that this one left behind may hold the channel open.
		time.AfterFunc(LastWords, func() { channel.Close() })
	}()
	go p.relay(label(b.Role, p.Number, p.PID, b.Who.UID), output{s.Output}, room)
	return p, nil
}

// Pipe is a pipe whose reading end waits in the poller and whose writing end blocks.
func Pipe() (*os.File, int, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, -1, errs.Wrap(err, errs.Internal, "make a pipe")
	}
	_ = unix.SetNonblock(fds[0], true)
	return os.NewFile(uintptr(fds[0]), "log of a process"), fds[1], nil
}

// wait waits for the death of the process and takes its status, so that no zombie stays.
func (p *Process) wait() {
	status := "lost"
	raw, err := p.PIDFD.SyscallConn()
	if err == nil {
		_ = raw.Read(func(uintptr) bool {
			var ws unix.WaitStatus
			pid, err := unix.Wait4(p.PID, &ws, unix.WNOHANG, nil)
			if err == unix.EINTR || err == nil && pid == 0 {
				return false
			}
			if err == nil {
				status, p.Caged, p.Crashed = Describe(ws), ws.Signaled() && ws.Signal() == unix.SIGSYS, isCrash(ws)
			}
			return true
		})
	}
	p.exit <- status
}

// AllWell is how a process ends that has done what it was for.
const AllWell = "exit status 0"

// isCrash reports whether a process ended by a fault of its own: by a signal
// that the kernel sends for one, or by a panic or a fatal error of Go's runtime.
// SIGKILL is the administrator's or the OOM killer's.
func isCrash(ws unix.WaitStatus) bool {
	if !ws.Signaled() {
		return ws.ExitStatus() == runtimeStatus
	}
	switch ws.Signal() {
	case unix.SIGSEGV, unix.SIGBUS, unix.SIGILL, unix.SIGFPE, unix.SIGTRAP, unix.SIGABRT, unix.SIGSYS:
		return true
	}
	return false
}

// runtimeStatus is the exit status of a Go program after a panic or a fatal error.
const runtimeStatus = 2

func Describe(ws unix.WaitStatus) string {
	if ws.Signaled() {
		return fmt.Sprintf("killed by signal %d (%s)", ws.Signal(), syscall.Signal(ws.Signal()))
	}
	return fmt.Sprintf("exit status %d", ws.ExitStatus())
}

// Condemn kills the process for a reason of the parent's own. The first one is what the log has.
func (p *Process) Condemn(why string) {
	p.Ending = cmp.Or(p.Ending, why)
	p.Kill()
}

// Kill ends the process.
func (p *Process) Kill() { p.Signal(unix.SIGKILL) }

// Signal sends a signal. The pidfd can't hit another process that got the same number.
func (p *Process) Signal(s unix.Signal) {
	if raw, err := p.PIDFD.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.PidfdSendSignal(int(fd), s, nil, 0) })
	}
}

// LastWords is how long a process that closed its channel may take to exit, and how
// long the channel of a dead one is still read.
const LastWords = time.Second

// Reap makes sure that the process is gone and closes all that the parent had of it.
// It returns how the process ended.
func (p *Process) Reap(patience time.Duration) string {
	timer := time.AfterFunc(patience, p.Kill)
	status := <-p.exit
	timer.Stop()
	p.Channel.Close()
	p.PIDFD.Close()
	select {
	case <-p.silent:
	case <-time.After(LastWords): // somebody else holds the pipe
	}
	p.log.Close()
	return status
}

// What an alarm says. docs/TRUST.md has what to do.
const (
	WorkerCaged = "worker was killed by its cage: it made a system call that no worker makes"
	CaptureHint = `somebody may be in it; look for type=1326 and its pid in the kernel's log, and see TRUST.md, "When a worker was captured"`
)
