package ctld

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become/nss"
	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
)

const noFollow = syscall.O_NOFOLLOW

// openStateDir creates the state directory if it is missing, and locks it. The
// returned lock is an open file, so the kernel releases the lock whenever this
// process exits, even if it crashes. The returned realPath leads to the
// directory without passing through a symbolic link.
//
// openStateDir checks the parent directories, too. Otherwise the owner of a
// parent directory could replace the state directory with another one that
// contains links to other files, and root would write to those files.
func openStateDir(dir string) (lock *os.File, realPath string, err error) {
	if !filepath.IsAbs(dir) {
		return nil, "", errs.New(errs.Invalid, "StateSaveLocation %q is not an absolute path", dir)
	}
	trust := guard.Trust{Owners: []uint32{uint32(os.Geteuid())}, PrivateGroup: nss.PrivateGroup}
	parent, realPath, name, err := guard.Parent(strings.TrimRight(dir, "/"), guard.Rule{Label: "state directory", Trust: &trust})
	if err != nil {
		return nil, "", err
	}
	defer parent.Close()
	d, err := openOrMakeDir(parent, name)
	if err != nil {
		return nil, "", fmt.Errorf("state directory: %w", err)
	}
	defer d.Close()
	if err := checkStateDir(d, dir); err != nil {
		return nil, "", err
	}
	fd, err := unix.Openat(int(d.Fd()), "lock", unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, "", fmt.Errorf("state directory: lock: %w", err)
	}
	lock = os.NewFile(uintptr(fd), "lock")
	if err := flock(lock); err != nil {
		lock.Close()
		return nil, "", errs.Wrap(err, errs.Conflict, "another controller uses the state directory %s", dir)
	}
	steps, err := openOrMakeDir(d, "steps")
	if err != nil {
		lock.Close()
		return nil, "", fmt.Errorf("state directory: %w", err)
	}
	steps.Close()
	return lock, realPath, nil
}

// openOrMakeDir opens the named directory in dir. If the named directory is
// missing, openOrMakeDir creates it first.
func openOrMakeDir(dir *os.File, name string) (*os.File, error) {
	if err := unix.Mkdirat(int(dir.Fd()), name, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("make %s: %w", name, err)
	}
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// checkStateDir returns an error if another user owns the directory or can
// write to it. A controller that runs as root must be able to trust the
// directory's contents. For example, the contents decide which processes the
// controller signals.
func checkStateDir(d *os.File, dir string) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(d.Fd()), &st); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	if euid := uint32(os.Geteuid()); st.Uid != euid {
		return errs.New(errs.Invalid, "state directory %s: belongs to uid %d, not to uid %d", dir, st.Uid, euid).
			WithHint("chown %d %s", euid, dir)
	}
	if st.Mode&0o022 != 0 {
		return errs.New(errs.Invalid, "state directory %s: other users can write to it", dir).WithHint("chmod 0700 %s", dir)
	}
	return nil
}

// flock locks f. If f is already locked, flock tries again for a short time. A
// controller that was just killed may have left a child that has not called
// exec yet and still holds the lock.
func flock(f *os.File) (err error) {
	for range 100 {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}
