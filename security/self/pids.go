package self

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"schedrestd/security"
)

// ReservedPIDs is the number of low process ids, from 1 on, that the kernel
// never reuses within a PID namespace.
const ReservedPIDs = 300

// LimitPIDs limits the processes and threads in the calling process's PID
// namespace, for all users together. The process must not be in the machine's
// PID namespace. Before Linux 6.14 all namespaces shared one limit. On such a
// kernel LimitPIDs changes nothing and returns errors.ErrUnsupported.
func LimitPIDs(limit int) error {
	if !security.KernelSince(6, 14) {
		return errors.ErrUnsupported
	}
	procFD, err := ownProc()
	if err != nil {
		return err
	}
	defer unix.Close(procFD)
	fd, err := unix.Openat(procFD, "sys/kernel/pid_max", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("limit the PID namespace: %w", err)
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, strconv.AppendInt(nil, int64(ReservedPIDs+limit), 10)); err != nil {
		return fmt.Errorf("limit the PID namespace: %w", err)
	}
	return nil
}

// ownProc returns a descriptor of a new /proc for the calling process's PID
// namespace. That /proc is mounted nowhere.
func ownProc() (int, error) {
	fsFD, err := unix.Fsopen("proc", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("create a /proc: %w", err)
	}
	defer unix.Close(fsFD)
	if err := unix.FsconfigCreate(fsFD); err != nil {
		return -1, fmt.Errorf("create a /proc: %w", err)
	}
	mountFD, err := unix.Fsmount(fsFD, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return -1, fmt.Errorf("create a /proc: %w", err)
	}
	return mountFD, nil
}
