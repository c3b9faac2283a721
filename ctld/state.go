package ctld

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
)

const noFollow = syscall.O_NOFOLLOW

// takeState makes or judges the state directory and locks it. The lock is the open file that is
// returned: the kernel lets go of it when this process dies, however.
func takeState(dir string) (*os.File, error) {
	if !filepath.IsAbs(dir) {
		return nil, errs.New(errs.Invalid, "StateSaveLocation %q is not an absolute path", dir)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	d, err := os.OpenFile(dir, unix.O_DIRECTORY|noFollow, 0)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	defer d.Close()
	if err := judgeState(d, dir); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE|noFollow, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := flock(lock); err != nil {
		lock.Close()
		return nil, errs.Wrap(err, errs.Conflict, "another controller uses the state directory %s", dir)
	}
	if err := os.Mkdir(filepath.Join(dir, "steps"), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		lock.Close()
		return nil, fmt.Errorf("state directory: %w", err)
	}
	return lock, nil
}

// judgeState refuses a directory that somebody else could have put something into: root obeys what
// lies there, down to which processes it signals.
func judgeState(d *os.File, dir string) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(d.Fd()), &st); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	if own := uint32(os.Geteuid()); st.Uid != own {
		return errs.New(errs.Invalid, "state directory %s belongs to uid %d, not to %d", dir, st.Uid, own).
			WithHint("chown %d %s", own, dir)
	}
	if st.Mode&0o022 != 0 {
		return errs.New(errs.Invalid, "state directory %s can be written by others", dir).WithHint("chmod 0700 %s", dir)
	}
	return nil
}

// flock takes the lock. A controller that was just killed may have left a child between fork
// and exec, which still holds it, for a moment.
func flock(f *os.File) (err error) {
	for range 100 {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}
