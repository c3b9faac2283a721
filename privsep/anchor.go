package privsep

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/security"
)

// anchor is the first process of the PID namespace of workers and keeper, in which they see and can signal
// each other at the most. It does nothing, and is nobody. The namespace lives as long as it
// does: when it ends, or the parent, the kernel kills all that is in there, whatever it is doing.
type anchor struct {
	pidfd *os.File
	line  *os.File // its descriptor 3 is the other end, and this one's end is its own
}

// enterPIDs has processes that the calling thread starts be born in a PID namespace of their own.
func (s *spawner) enterPIDs() error {
	if err := unix.Unshare(unix.CLONE_NEWPID); err != nil {
		return errs.Wrap(err, errs.Unsupported, "make a PID namespace")
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return errs.Wrap(err, errs.Internal, "make a line to the first process")
	}
	defer unix.Close(fds[1])
	line := os.NewFile(uintptr(fds[0]), "line to the first process")
	for _, id := range become.Strangers() {
		b := birth{role: ipc.Worker, program: s.program, argv: append(s.argv[:len(s.argv):len(s.argv)], ipc.AnchorMode),
			threads: 1, who: security.Identity{UID: id, GID: id}}
		var pidfd int
		if _, pidfd, err = s.execute(b, fds[1], fds[1]); err == nil {
			_ = unix.SetNonblock(pidfd, true)
			s.anchor = &anchor{os.NewFile(uintptr(pidfd), "first process"), line}
			return nil
		}
	}
	line.Close()
	return err
}

// watch calls lost when the anchor is gone, and everything in its namespace with it.
func (a *anchor) watch(lost func()) {
	if a == nil {
		return
	}
	raw, err := a.pidfd.SyscallConn()
	if err != nil {
		return
	}
	go func() {
		err := raw.Read(func(fd uintptr) bool {
			var info unix.Siginfo
			return unix.Waitid(unix.P_PIDFD, int(fd), &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) != nil || info.Signo == int32(syscall.SIGCHLD)
		})
		if err == nil { // else it was closed
			lost()
		}
	}()
}

// stop ends the anchor, which nothing needs any more.
func (a *anchor) stop() {
	if a != nil {
		a.pidfd.Close()
		a.line.Close()
	}
}
