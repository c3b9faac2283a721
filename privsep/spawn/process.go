package spawn

import (
	"cmp"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/security"
)

// Process is a child of a Spawner, as the parent sees it.
type Process struct {
	Number  uint32
	Who     security.Identity
	PID     int
	PIDFD   *os.File // non-blocking: the poller waits for the death, no thread does
	Channel *ipc.Channel
	Started time.Time
	Ending  string // why the parent ended it; "" when it ended by itself. Guarded by the lock of the owner of the process

	Dead    chan struct{} // closed when it has ended; the following are set by then
	Caged   bool          // by a system call that its sandbox kills for
	Crashed bool          // by a fault of its own, Caged included
	status  string        // how it ended
	ended   unix.WaitStatus

	log    *os.File      // reading end of its fd 2
	silent chan struct{} // closed when all that it logged was read; nil: it logs nothing
}

// newProcess returns the process, and begins to wait for its exit.
func newProcess(b Birth, pid, pidfd int) *Process {
	_ = unix.SetNonblock(pidfd, true)
	p := &Process{Who: b.Who, PID: pid, PIDFD: os.NewFile(uintptr(pidfd), b.Role.String()), Started: time.Now(), Dead: make(chan struct{})}
	go p.wait()
	return p
}

// Pipe returns a pipe whose reading end waits in the poller and whose writing
// end blocks.
func Pipe() (*os.File, int, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, -1, errs.Wrap(err, errs.Internal, "make a pipe")
	}
	_ = unix.SetNonblock(fds[0], true)
	return os.NewFile(uintptr(fds[0]), "log of a process"), fds[1], nil
}

// wait waits until the process has exited and takes its status, so that no
// zombie stays.
func (p *Process) wait() {
	defer close(p.Dead)
	p.status = "lost"
	raw, err := p.PIDFD.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(uintptr) bool {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(p.PID, &ws, unix.WNOHANG, nil)
		if err == unix.EINTR || err == nil && pid == 0 {
			return false
		}
		if err == nil {
			p.ended, p.status, p.Caged, p.Crashed = ws, Describe(ws), ws.Signaled() && ws.Signal() == unix.SIGSYS, isCrash(ws)
		}
		return true
	})
}

// AllWell is how a process ends that has done what it was for.
const AllWell = "exit status 0"

// isCrash reports whether a process ended by a fault of its own: by a signal
// that the kernel sends for one, or by a panic or a fatal error of Go's
// runtime. SIGKILL comes from the administrator or the OOM killer.
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

// Condemn kills the process for a reason of the parent's own. The log shows the
// first reason.
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
	<-p.Dead
	timer.Stop()
	p.Channel.Close()
	p.PIDFD.Close()
	select {
	case <-p.silent:
	case <-time.After(LastWords): // another process holds the pipe
	}
	p.log.Close()
	return p.status
}

// The messages of alarms. docs/TRUST.md explains what to do.
const (
	WorkerCaged = "worker was killed by its cage: it made a system call that no worker makes"
	CaptureHint = `somebody may be in it; look for type=1326 and its pid in the kernel's log, and see TRUST.md, "When a worker was captured"`
)

// firstPID is the init process of the PID namespace of workers and services, in which
// they can see and signal at most each other. It mounts the /proc of that namespace,
// which is the only thing that it does with the parent's identity; then it is nobody
// and does nothing (worker/namespaceinit.go). When it ends, or the parent does, the kernel
// kills everything in the namespace.
type firstPID struct {
	*Process
	line    *os.File    // its descriptor 3 is the other end; it ends when this one is closed
	stopped atomic.Bool // by the parent
}

// stop ends the process, which nothing needs any more, and waits for it: whatever is
// left in its namespace ends before it.
func (f *firstPID) stop() {
	if f == nil {
		return
	}
	f.stopped.Store(true)
	f.Kill()
	f.awaitDeath(LastWords) // unless a process in there can't be killed, or was not waited for
	f.PIDFD.Close()
	f.line.Close()
}

// awaitDeath returns when the process has ended, and after limit in any case.
func (p *Process) awaitDeath(limit time.Duration) {
	select {
	case <-p.Dead:
	case <-time.After(limit):
	}
}
