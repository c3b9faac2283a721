package spawn

import (
	"errors"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/guard"
	"schedrestd/security"
)

// noProcess says of a start that the kernel refused what can be done: for want of a process where the limits are, for want of
// a program what is the matter with that.
func noProcess(program string, err error) error {
	switch {
	case errors.Is(err, unix.ENOEXEC):
		return &errs.Error{Err: err, Hint: "file " + guard.Quote(program) + "  # it is for another processor, or no program: make install puts one for this machine there"}
	case errors.Is(err, unix.EACCES):
		return &errs.Error{Err: err, Hint: "findmnt -T " + guard.Quote(program) + "  # a program can't be started from where noexec is mounted, or a security module forbids it"}
	case !errors.Is(err, unix.EAGAIN):
		return err
	}
	return &errs.Error{Kind: errs.Internal, Message: "a limit of processes and threads is reached", Err: err,
		Hint: "the limits are the service's (TasksMax= in its unit), the user's (ulimit -u), the workers' PID namespace's and the machine's (kernel.pid_max, kernel.threads-max); or a worker uses them up"}
}

const (
	// idleThreads is how many threads a process may have beside those that run at one time.
	idleThreads = 64
	// mostOfUser is how many processes and threads a user may have who starts one more in a worker of his. He may have others than
	// ours, as nobody and a user of become_user do; it is there so that a captured worker does not take all that there are.
	MostOfUser = 4096
)

// tasks is the limit of processes and threads for a process with so many threads that run at one time. The kernel
// counts by user, and since Linux 5.14 by user and user namespace.
func (s *Spawner) tasks(threads int) uint64 {
	if s.nest != nil && security.KernelSince(5, 14) {
		return uint64(threads + idleThreads)
	}
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &own) != nil {
		return MostOfUser
	}
	return min(MostOfUser, own.Max)
}
