package spawn

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
)

// Process is a child of a Spawner.
type Process struct {
	PID    int
	Exited chan struct{}   // closed when the process has exited
	Status unix.WaitStatus // the exit status, valid once Exited is closed

	pidfd *os.File // non-blocking: the poller waits for the exit, and no thread is blocked
}

// newProcess returns a Process for pid, and starts a goroutine that waits for
// the process to exit.
func newProcess(name string, pid, pidfd int) *Process {
	_ = unix.SetNonblock(pidfd, true)
	p := &Process{PID: pid, pidfd: os.NewFile(uintptr(pidfd), name), Exited: make(chan struct{})}
	go p.wait()
	return p
}

// pipe returns both ends of a pipe. The reading end uses the runtime's poller.
// The writing end is a descriptor in blocking mode.
func pipe() (*os.File, int, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, -1, errs.Wrap(err, errs.Internal, "create a pipe")
	}
	_ = unix.SetNonblock(fds[0], true)
	return os.NewFile(uintptr(fds[0]), "log of a process"), fds[1], nil
}

// wait waits until the process has exited, and reads its exit status, so that
// no zombie remains.
func (p *Process) wait() {
	defer close(p.Exited)
	defer p.pidfd.Close()
	raw, err := p.pidfd.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(uintptr) bool {
		// The kernel reports the exit while the last thread of the process still
		// removes its entry from /proc. Wait4 removes the entry of the process, and
		// waits for that thread in a loop that keeps the processor busy, for
		// milliseconds if the thread is waiting for the same processor.
		time.Sleep(time.Millisecond)
		pid, err := unix.Wait4(p.PID, &p.Status, unix.WNOHANG, nil)
		return err != unix.EINTR && (err != nil || pid != 0)
	})
}

// Kill ends the process.
func (p *Process) Kill() { p.Signal(unix.SIGKILL) }

// Signal sends a signal through the pidfd, because the pid may already belong
// to another process.
func (p *Process) Signal(s unix.Signal) {
	if raw, err := p.pidfd.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.PidfdSendSignal(int(fd), s, nil, 0) })
	}
}

// exitTimeout limits how long a process may take to exit when it is no longer
// needed.
const exitTimeout = time.Second

// awaitExit waits for the process to exit, but no longer than limit. It reports
// whether the process has exited.
func (p *Process) awaitExit(limit time.Duration) bool {
	select {
	case <-p.Exited:
		return true
	case <-time.After(limit):
		return false
	}
}
