// Package closeonexec keeps a process's descriptors from the programs that it
// executes.
package closeonexec

import (
	"golang.org/x/sys/unix"
)

// Mark marks all descriptors above 2 as close-on-exec. Otherwise a program would
// inherit files that a shell or a service manager left open when it started this
// process.
func Mark() error {
	err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	if err == unix.EINVAL || err == unix.ENOSYS { // Linux before 5.11
		return markEach()
	}
	return err
}

// maxDescriptors limits how many descriptors markEach marks. By default, Linux
// permits a process no more (fs.nr_open).
const maxDescriptors = 1 << 20

// markEach does the same as Mark, with a system call for each descriptor that this
// process could have. The list in /proc/self/fd may be hidden from a process that
// has changed its user.
func markEach() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	for fd := range min(limit.Max, maxDescriptors) {
		if fd > 2 {
			unix.CloseOnExec(int(fd))
		}
	}
	return nil
}
