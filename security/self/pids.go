package self

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"schedrestd/security"
)

// ReservedPIDs is how many process ids, from 1 on, the kernel assigns only once
// in each PID namespace.
const ReservedPIDs = 300

// LimitPIDs limits the processes and threads in the calling process's PID
// namespace, for all users together. The process must not be in the machine's
// PID namespace. Before Linux 6.14 all namespaces shared one limit. On such a
// kernel LimitPIDs changes nothing and returns errors.ErrUnsupported.
func LimitPIDs(most int) error {
	if !security.KernelSince(6, 14) {
		return errors.ErrUnsupported
	}
	at, err := ownProc()
	if err != nil {
		return err
	}
	defer unix.Close(at)
	fd, err := unix.Openat(at, "sys/kernel/pid_max", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("limit the PID namespace: %w", err)
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, strconv.AppendInt(nil, int64(ReservedPIDs+most), 10)); err != nil {
		return fmt.Errorf("limit the PID namespace: %w", err)
	}
	return nil
}

// ownProc returns a descriptor of a new /proc for the calling process's PID
// namespace. That /proc is mounted nowhere.
func ownProc() (int, error) {
	made, err := unix.Fsopen("proc", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("create a /proc: %w", err)
	}
	defer unix.Close(made)
	if err := unix.FsconfigCreate(made); err != nil {
		return -1, fmt.Errorf("create a /proc: %w", err)
	}
	at, err := unix.Fsmount(made, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return -1, fmt.Errorf("create a /proc: %w", err)
	}
	return at, nil
}
