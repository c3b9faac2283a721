package root

import (
	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
)

const proc = "/proc"

// UnmountProc unmounts the /proc that Enter mounted. That is the machine's
// /proc, because the process that called Enter was in the machine's PID
// namespace.
func UnmountProc() error {
	return errs.Wrap(unix.Unmount(proc, unix.MNT_DETACH), errs.Internal, "unmount the machine's /proc")
}

// MountProc mounts the /proc of the calling process's PID namespace, if the
// root has no /proc yet.
func MountProc() error {
	var st unix.Stat_t
	if unix.Lstat(proc+"/self", &st) == nil {
		return nil
	}
	return mountProc(proc)
}

// mountProc mounts a /proc in which a non-dumpable process is invisible to
// other processes with the same uid.
func mountProc(dir string) (err error) {
	const flags = mountFlags | unix.MS_NOEXEC | unix.MS_RDONLY
	for _, options := range []string{"hidepid=invisible,subset=pid", "hidepid=2"} { // the first set of options needs Linux 5.8
		if err = unix.Mount("proc", dir, "proc", flags, options); err == nil {
			return nil
		}
	}
	return errs.Wrap(err, errs.Unsupported, "mount the workers' own /proc")
}
