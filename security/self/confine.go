package self

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/security"
)

// Confine permanently restricts the calling process:
//   - It can have at most as many open descriptors as the files parameter says.
//   - It can't write to files, unless the writes parameter is true.
//   - It can't write core files, which would contain tokens.
//   - It can't gain privileges by executing a program.
//   - Other processes of its uid can't debug it.
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
	if err := security.MakeNonDumpable(); err != nil {
		return err
	}
	return noNewPrivsProcess()
}

// ConfineReader confines a process that starts other programs and writes to an
// inherited standard output, which may be a file. Unlike Confine, ConfineReader
// leaves the limits on descriptors and file sizes unchanged, and closes
// inherited descriptors.
func ConfineReader() error {
	if err := security.CloseInherited(); err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("limit the core file size to 0: %w", err)
	}
	if err := security.MakeNonDumpable(); err != nil {
		return err
	}
	return noNewPrivsProcess()
}

// LimitTasks sets RLIMIT_NPROC of the calling process. If the process's user
// already has that many processes and threads, the process can start no more.
// In a user namespace the kernel counts only the processes and threads in that
// namespace. Without this limit a compromised process could use up all
// processes and threads that the machine or the service may have.
func LimitTasks(limit uint64) error {
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
		return fmt.Errorf("limit processes and threads to %d: %w", limit, err)
	}
	return nil
}

// noNewPrivsProcess sets no_new_privs on all threads, unless it is already set.
// Workers inherit it from the parent's thread that starts them.
func noNewPrivsProcess() error {
	on, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil {
		return fmt.Errorf("query no_new_privs: %w", err)
	}
	if on == 1 {
		return nil
	}
	if _, _, e := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); e != 0 {
		return fmt.Errorf("set no_new_privs: %w", e)
	}
	return nil
}
