package step

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// isolate has nothing that a stage was born with passed on: the controller may have been started
// with a file of root's open, which the job's user could take from his own processes.
func isolate() error {
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close descriptors at exec: %w", err)
	}
	return nil
}

// unseen keeps the other processes of the job's user from tracing the second stage, which is
// the user before it becomes the script, and from taking its descriptors (pidfd_getfd). They
// have until here to try; none when the program is installed with a mode of 0711.
func unseen() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("refuse to be traced: %w", err)
	}
	return nil
}

// leaveKeyring gives the calling thread, and what it starts, an empty session keyring: a job would
// else have the keys of the session that root started the controller in. A kernel without keys,
// or a container that may not touch any, has none to leave.
func leaveKeyring() error {
	_, _, e := unix.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0)
	if e == 0 || errors.Is(e, unix.ENOSYS) || errors.Is(e, unix.EPERM) {
		return nil
	}
	return e
}
