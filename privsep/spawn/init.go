package spawn

import (
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/security"
	"schedrestd/security/root"
)

// firstPID is the init process of the PID namespace of workers and services, in which
// they can see and signal at most each other. It mounts the /proc of that namespace,
// which is the only thing that it does with the parent's identity; then it is nobody
// and does nothing (worker/anchor.go). When it ends, or the parent does, the kernel
// kills everything in the namespace.
type firstPID struct {
	*Process
	line    *os.File    // its descriptor 3 is the other end; it ends when this one is closed
	stopped atomic.Bool // by the parent
}

// enterPIDs has processes that the calling thread starts be born in a PID namespace of
// their own. When it fails they are born where they were.
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
		if s.first, err = s.startFirst(security.Identity{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}); err == nil {
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

// startFirst starts the init process on this thread, and returns when it has closed
// its sandbox.
func (s *Spawner) startFirst(who security.Identity) (*firstPID, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, errs.Wrap(err, errs.Internal, "make a line to the first process")
	}
	line := os.NewFile(uintptr(fds[0]), "line to the first process")
	p, err := s.execute(Birth{Role: ipc.Worker, Program: s.Worker, Threads: 1, Who: who,
		Argv: append(slices.Clone(s.Argv), fmt.Sprintf("%d,%d", s.Seal, s.PIDs), ipc.AnchorMode)}, fds[1], int(s.null.Fd()))
	unix.Close(fds[1])
	if err != nil {
		line.Close()
		return nil, err
	}
	first := &firstPID{Process: p, line: line}
	limit := unix.NsecToTimeval(int64(s.StartLimit))
	_ = unix.SetsockoptTimeval(fds[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit)
	var said [512]byte
	n, err := unix.Read(fds[0], said[:])
	if err == nil && string(said[:n]) == ipc.AnchorHolds {
		return first, nil
	}
	first.stop()
	switch {
	case err != nil:
		return nil, errs.New(errs.Unsupported, "the first process of the PID namespace says nothing (%v)", err)
	case n == 0:
		return nil, errs.New(errs.Unsupported, "the first process of the PID namespace says nothing, as %s of another build would", s.Worker.Name())
	}
	return nil, errs.New(errs.Unsupported, "the first process of the PID namespace: %s", Printable(string(said[:n])))
}

// IsLost reports whether the PID namespace has ended, and the parent did not end it.
func (s *Spawner) IsLost() bool {
	if s.first == nil || s.first.stopped.Load() {
		return false
	}
	select {
	case <-s.first.Dead:
		return true
	default:
		return false
	}
}

// isEnding waits for the end of a PID namespace in which no process starts any more,
// and reports whether it was lost.
func (s *Spawner) isEnding() bool {
	if s.first != nil {
		s.first.awaitDeath(LastWords) // which comes when all in there have been waited for
	}
	return s.IsLost()
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
