package step

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// disableTracing prevents other processes of the job's user from tracing this
// process, and from taking its descriptors (pidfd_getfd). This process is the
// second stage of a step. It already runs as the job's user, and has not
// executed the script yet. The user can trace it before this call, unless the
// program is installed with mode 0711.
func disableTracing() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("disable tracing: %w", err)
	}
	return nil
}

// leaveKeyring gives the calling thread and its children an empty session
// keyring. Otherwise the job would have the keys of the session in which root
// started the controller. If the kernel does not support keyrings, or does not
// permit them in this container, leaveKeyring does nothing and returns nil.
func leaveKeyring() error {
	_, _, e := unix.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0)
	if e == 0 || errors.Is(e, unix.ENOSYS) || errors.Is(e, unix.EPERM) {
		return nil
	}
	return e
}
