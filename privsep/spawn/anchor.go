package spawn

import (
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/security"
	"schedrestd/security/root"
)

// anchor is the first process of the PID namespace of workers and keeper, in which they see and can signal
// each other at the most. It mounts the /proc of that namespace, as the one thing that it does as who the parent is; then it is
// nobody, and does nothing (worker/anchor.go). The namespace lives as long as it
// does: when it ends, or the parent, the kernel kills all that is in there, whatever it is doing.
type anchor struct {
	pid   int
	pidfd *os.File
	line  *os.File      // its descriptor 3 is the other end, and this one's end is its own
	over  chan struct{} // closed when it has ended, and its status was taken
	let   atomic.Bool   // the end of it is the parent's wish
}

// enterPIDs has processes that the calling thread starts be born in a PID namespace of their own. When it fails they are
// born where they were.
func (s *Spawner) enterPIDs() error {
	own, err := unix.Open("/proc/thread-self/ns/pid", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return errs.Wrap(err, errs.Unsupported, "find the PID namespace")
	}
	defer unix.Close(own)
	if err := unix.Unshare(unix.CLONE_NEWPID); err != nil {
		return errs.Wrap(err, errs.Unsupported, "make a PID namespace")
	}
	if s.space != nil {
		err = root.LeaveProc()
	}
	if err == nil {
		if s.Anchor, err = s.drop(security.Identity{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}); err == nil {
			return nil
		}
	}
	if failed := unix.Setns(own, unix.CLONE_NEWPID); failed != nil {
		return errs.Wrap(failed, errs.Internal, "go back to the PID namespace, after: %v", err)
	}
	if s.space != nil {
		if failed := root.MountProc(); failed != nil {
			return failed
		}
	}
	return err
}

// drop starts an anchor, and returns when it holds.
func (s *Spawner) drop(who security.Identity) (*anchor, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, errs.Wrap(err, errs.Internal, "make a line to the first process")
	}
	line := os.NewFile(uintptr(fds[0]), "line to the first process")
	b := Birth{Role: ipc.Worker, Program: s.Worker, Threads: 1, Who: who,
		Argv: append(slices.Clone(s.Argv), fmt.Sprintf("%d,%d", s.Seal, s.PIDs), ipc.AnchorMode)}
	pid, pidfd, err := s.execute(b, fds[1], int(s.null.Fd()))
	unix.Close(fds[1])
	if err != nil {
		line.Close()
		return nil, err
	}
	_ = unix.SetNonblock(pidfd, true)
	a := &anchor{pid: pid, pidfd: os.NewFile(uintptr(pidfd), "first process"), line: line, over: make(chan struct{})}
	go a.reap()
	limit := unix.NsecToTimeval(int64(s.StartLimit))
	_ = unix.SetsockoptTimeval(fds[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit)
	var said [512]byte
	n, err := unix.Read(fds[0], said[:])
	if err == nil && string(said[:n]) == ipc.AnchorHolds {
		return a, nil
	}
	a.stop()
	if err == nil && n == 0 {
		return nil, errs.New(errs.Unsupported, "the first process of the PID namespace says nothing, as %s of another build would", s.Worker.Name())
	}
	if err != nil {
		return nil, errs.New(errs.Unsupported, "the first process of the PID namespace says nothing (%v)", err)
	}
	return nil, errs.New(errs.Unsupported, "the first process of the PID namespace: %s", Printable(string(said[:n])))
}

// reap waits for the end of it, and takes its status.
func (a *anchor) reap() {
	defer close(a.over)
	raw, err := a.pidfd.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PIDFD, int(fd), &info, unix.WEXITED|unix.WNOHANG, nil)
		return err != nil && err != unix.EINTR || info.Signo == int32(syscall.SIGCHLD)
	})
}

// Loss is the end of the last anchor that nobody wished for. It ends the service as a signal does.
type Loss struct{}

func (Loss) String() string { return "each PID namespace that was made for workers has ended" }
func (Loss) Signal()        {}

// IsLost tells whether the anchor has ended without having been let, and everything in its namespace with it.
func (a *anchor) IsLost() bool {
	if a == nil || a.let.Load() {
		return false
	}
	select {
	case <-a.over:
		return true
	default:
		return false
	}
}

// ends waits for an anchor whose namespace is ending, and reports whether it was lost.
func (a *anchor) ends() bool {
	if a == nil {
		return false
	}
	select {
	case <-a.over: // when all that was in there has been waited for
	case <-time.After(LastWords):
	}
	return a.IsLost()
}

// stop ends the anchor, which nothing needs any more, and waits for it: whatever is left in its namespace ends before it.
func (a *anchor) stop() {
	if a == nil {
		return
	}
	a.let.Store(true)
	if raw, err := a.pidfd.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) })
	}
	select {
	case <-a.over:
	case <-time.After(LastWords): // somebody in there can't be killed, or was not waited for
	}
	a.pidfd.Close()
	a.line.Close()
}
