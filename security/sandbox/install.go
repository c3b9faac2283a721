package sandbox

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
)

// installFilter permanently restricts the process to the system calls in the
// table for the options o. The filter applies to all present and future
// threads. The process must have no_new_privs already.
func installFilter(o Options) error {
	program, err := compile(table(o, unix.Getpid()), o.Audit)
	if err != nil {
		return fmt.Errorf("build the system call filter: %w", err)
	}
	f := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	r, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&f)))
	switch {
	case e == unix.ENOSYS || e == unix.EINVAL:
		return errs.New(errs.Unsupported, "this kernel has no system call filters: %v", e).
			WithHint("use a kernel with CONFIG_SECCOMP_FILTER, Linux 4.14 or later")
	case e == unix.EACCES:
		return errs.New(errs.Internal, "install the system call filter: the process lacks no_new_privs")
	case e != 0:
		return fmt.Errorf("install the system call filter: %w", e)
	case r != 0:
		return fmt.Errorf("install the system call filter: thread %d already has another filter", r)
	}
	return nil
}
