package security

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
)

// MakeNonDumpable makes the process non-dumpable. Otherwise another process
// with the same uid could attach a debugger to read tokens or change code.
func MakeNonDumpable() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("become non-dumpable: %w", err)
	}
	return nil
}

// NoNewPrivsThread sets no_new_privs on the calling thread. Threads and
// processes that this thread starts inherit the flag.
func NoNewPrivsThread() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	return nil
}

// CloseInherited closes all inherited descriptors except the standard ones.
// Otherwise an attacker who captures this process could use them, for example
// to read a secret file that root's shell had open. CloseInherited recognizes
// inherited descriptors by their missing close-on-exec flag. Descriptors that
// this process opened or adopted have the flag, and stay open.
func CloseInherited() error {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return &errs.Error{Message: "list inherited descriptors", Err: err, Hint: "mount -t proc proc /proc  # it lists a process's descriptors"}
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
