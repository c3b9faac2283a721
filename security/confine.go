package security

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
)

// Confine takes from the calling process what it can give up by itself: core files (they
// would hold tokens), the writing of files, descriptors beyond files, being read by
// other processes of its uid, and privileges through any later exec. One that writes keeps the
// limit of the size of files that it was born with.
func Confine(files uint64, writes bool) error {
	limits := []struct {
		name  string
		which int
		value uint64
	}{
		{"core file size", unix.RLIMIT_CORE, 0},
		{"open files", unix.RLIMIT_NOFILE, files},
		{"file size", unix.RLIMIT_FSIZE, 0},
	}
	if writes {
		limits = limits[:2]
	}
	for _, l := range limits {
		if err := unix.Setrlimit(l.which, &unix.Rlimit{Cur: l.value, Max: l.value}); err != nil {
			return fmt.Errorf("limit the %s to %d: %w", l.name, l.value, err)
		}
	}
	if err := HideFromNeighbours(); err != nil {
		return err
	}
	return noNewPrivsProcess()
}

// ConfineReader is Confine for a process that writes to the standard output of its
// starter, which may be a file, and that starts others.
func ConfineReader() error {
	if err := CloseInherited(); err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("limit the core file size to 0: %w", err)
	}
	if err := HideFromNeighbours(); err != nil {
		return err
	}
	return noNewPrivsProcess()
}

// LimitTasks bounds how many processes and threads the calling process's user may have when this process starts
// one more: in a user namespace of its own they are its own. Without it a captured process takes all that the machine, or the
// limit of the service, has for everybody.
func LimitTasks(most uint64) error {
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: most, Max: most}); err != nil {
		return fmt.Errorf("limit processes and threads to %d: %w", most, err)
	}
	return nil
}

// HideFromNeighbours makes the process non-dumpable: without it another process of
// the same uid could attach a debugger and read tokens, or write code.
func HideFromNeighbours() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("become non-dumpable: %w", err)
	}
	return nil
}

// noNewPrivsProcess sets no_new_privs on all threads. A worker is born with it, as its
// parent's spawning thread has it, and then every thread has it already.
func noNewPrivsProcess() error {
	on, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil {
		return fmt.Errorf("ask for no_new_privs: %w", err)
	}
	if on == 1 {
		return nil
	}
	if _, _, e := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); e != 0 {
		return fmt.Errorf("set no_new_privs: %w", e)
	}
	return nil
}

// NoNewPrivsThread sets no_new_privs on the calling thread, and so on all that it starts.
func NoNewPrivsThread() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	return nil
}

// CloseInherited closes what the starter of this process left open beyond the standard descriptors: a root shell's secret
// file would else be in reach of who captures this process. What survived being executed has no close-on-exec mark; what this
// process has opened since, or taken over, has one.
func CloseInherited() error {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return &errs.Error{Message: "list inherited descriptors", Err: err, Hint: "mount -t proc proc /proc  # the kernel says there what a process has"}
	}
	for _, e := range list {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= 2 {
			continue
		}
		if mark, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && mark&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
	return nil
}
