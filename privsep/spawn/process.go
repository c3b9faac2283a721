package spawn

import (
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
)

// Process is a child of a Spawner.
type Process struct {
	PID   int
	Dead  chan struct{}   // closed when it has ended
	Ended unix.WaitStatus // how, when Dead is closed

	pidfd *os.File // non-blocking: the poller waits for the death, no thread does
}

// newProcess returns the process, and begins to wait for its exit.
func newProcess(name string, pid, pidfd int) *Process {
	_ = unix.SetNonblock(pidfd, true)
	p := &Process{PID: pid, pidfd: os.NewFile(uintptr(pidfd), name), Dead: make(chan struct{})}
	go p.wait()
	return p
}

// pipe returns a pipe whose reading end waits in the poller and whose writing
// end blocks.
func pipe() (*os.File, int, error) {
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
	defer p.pidfd.Close()
	raw, err := p.pidfd.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(uintptr) bool {
		pid, err := unix.Wait4(p.PID, &p.Ended, unix.WNOHANG, nil)
		return err != unix.EINTR && (err != nil || pid != 0)
	})
}

// Kill ends the process.
func (p *Process) Kill() { p.Signal(unix.SIGKILL) }

// Signal sends a signal. The pidfd can't hit another process that got the same number.
func (p *Process) Signal(s unix.Signal) {
	if raw, err := p.pidfd.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.PidfdSendSignal(int(fd), s, nil, 0) })
	}
}

// lastWords is how long a process may take to end once nothing needs it.
const lastWords = time.Second

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
	f.awaitDeath(lastWords) // unless a process in there can't be killed, or was not waited for
	f.line.Close()
}

// awaitDeath returns when the process has ended, and after limit in any case.
func (p *Process) awaitDeath(limit time.Duration) {
	select {
	case <-p.Dead:
	case <-time.After(limit):
	}
}
