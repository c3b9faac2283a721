package privsep

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

// process is a child of the spawner, a worker or the keeper, as the parent sees it.
type process struct {
	number  uint32
	who     security.Identity
	pid     int
	pidfd   *os.File // non-blocking: the poller waits for the death, no thread does
	channel *ipc.Channel
	log     *os.File      // reading end of its fd 2
	exit    chan string   // gets how the process ended
	caged   bool          // by a system call that its cage kills for; set before exit gets that
	crashed bool          // by a fault of its own, caged included; likewise
	dead    chan struct{} // closed when it has
	silent  chan struct{} // closed when all that it logged was read
	started time.Time
	ending  string // why the parent ended it; "" when it ended by itself. Guarded by the lock of whose process it is
}

// birth is what a process is started with.
type birth struct {
	role    ipc.Role
	program *os.File
	argv    []string
	threads int    // that run at one time
	files   uint64 // limit of open descriptors
	who     security.Identity
}

// launch starts a process with a channel and a log of its own; room bounds what it may log.
func (s *spawner) launch(b birth, room *quota) (*process, error) {
	channel, theirs, err := ipc.Pair(ipc.Parent, b.role)
	if err != nil {
		return nil, err
	}
	defer unix.Close(theirs) // a copy kept here would hide the death
	logRead, logWrite, err := pipe()
	if err != nil {
		channel.Close()
		return nil, err
	}
	defer unix.Close(logWrite)
	p := &process{number: s.number.Add(1), who: b.who, channel: channel, log: logRead, started: time.Now(),
		exit: make(chan string, 1), dead: make(chan struct{}), silent: make(chan struct{})}
	pid, pidfd, err := s.start(b, theirs, logWrite)
	if err != nil {
		channel.Close()
		logRead.Close()
		return nil, err
	}
	_ = unix.SetNonblock(pidfd, true)
	p.pid, p.pidfd = pid, os.NewFile(uintptr(pidfd), b.role.String())
	go func() {
		p.reap()
		close(p.dead)
		// A process that this one left behind may hold the channel open.
		time.AfterFunc(lastWords, func() { channel.Close() })
	}()
	go p.relay(label(b.role, p.number, p.pid, b.who.UID), output{s.Output}, room)
	return p, nil
}

// pipe is a pipe whose reading end waits in the poller and whose writing end blocks.
func pipe() (*os.File, int, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, -1, errs.Wrap(err, errs.Internal, "make a pipe")
	}
	_ = unix.SetNonblock(fds[0], true)
	return os.NewFile(uintptr(fds[0]), "log of a process"), fds[1], nil
}

// reap waits for the death of the process and takes its status, so that no zombie stays.
func (p *process) reap() {
	status := "lost"
	raw, err := p.pidfd.SyscallConn()
	if err == nil {
		_ = raw.Read(func(uintptr) bool {
			var ws unix.WaitStatus
			pid, err := unix.Wait4(p.pid, &ws, unix.WNOHANG, nil)
			if err == unix.EINTR || err == nil && pid == 0 {
				return false
			}
			if err == nil {
				status, p.caged, p.crashed = describe(ws), ws.Signaled() && ws.Signal() == unix.SIGSYS, isCrash(ws)
			}
			return true
		})
	}
	p.exit <- status
}

// allWell is how a process ends that has done what it was for.
const allWell = "exit status 0"

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

func describe(ws unix.WaitStatus) string {
	if ws.Signaled() {
		return fmt.Sprintf("killed by signal %d (%s)", ws.Signal(), syscall.Signal(ws.Signal()))
	}
	return fmt.Sprintf("exit status %d", ws.ExitStatus())
}

// condemn kills the process for a reason of the parent's own. The first one is what the log has.
func (p *process) condemn(why string) {
	p.ending = cmp.Or(p.ending, why)
	p.kill()
}

// kill ends the process.
func (p *process) kill() { p.signal(unix.SIGKILL) }

// signal sends a signal. The pidfd can't hit another process that got the same number.
func (p *process) signal(s unix.Signal) {
	if raw, err := p.pidfd.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.PidfdSendSignal(int(fd), s, nil, 0) })
	}
}

// lastWords is how long a process that closed its channel may take to exit, and how
// long the channel of a dead one is still read.
const lastWords = time.Second

// bury makes sure that the process is gone and closes all that the parent had of it.
// It returns how the process ended.
func (p *process) bury(patience time.Duration) string {
	timer := time.AfterFunc(patience, p.kill)
	status := <-p.exit
	timer.Stop()
	p.channel.Close()
	p.pidfd.Close()
	select {
	case <-p.silent:
	case <-time.After(lastWords): // somebody else holds the pipe
	}
	p.log.Close()
	return status
}
