package privsep

import (
	"errors"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/guard"
	"schedrestd/security"
)

// spareThreads is how many threads the parent makes at its start. Go starts one more whenever each that it has
// is in a system call, and ends the process when the kernel has none: so a worker that takes what the limit
// of the service or of the user leaves would end the parent, and with it everything. Those that are idle are kept.
//
// Needed at one time: one that runs, two of the runtime's own, one that hears signals, the spawners', the outlet's, one for the log,
// two for the audit log's file, two for files that are followed, and one that rereads the configuration. Those are twelve; on a busy machine
// a call that is short keeps its thread for long.
const spareThreads = 32

// makeThreads makes n threads, which stay.
func makeThreads(n int) {
	var there, over sync.WaitGroup
	end := make(chan struct{})
	for range n {
		there.Add(1)
		over.Go(func() {
			runtime.LockOSThread() // so that the next one needs another
			defer runtime.UnlockOSThread()
			there.Done()
			<-end
		})
	}
	there.Wait()
	close(end)
	over.Wait()
}

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
	mostOfUser = 4096
)

// tasks is the limit of processes and threads for a process with so many threads that run at one time. The kernel
// counts by user, and since Linux 5.14 by user and user namespace.
func (s *spawner) tasks(threads int) uint64 {
	if s.nest != nil && security.KernelSince(5, 14) {
		return uint64(threads + idleThreads)
	}
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &own) != nil {
		return mostOfUser
	}
	return min(mostOfUser, own.Max)
}
