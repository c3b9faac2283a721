package auditlog

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/errs"
	"schedrestd/guard"
)

// file is the audit log or the file of claims, by its name. The auditor writes it.
type file struct {
	path string
	rule guard.Rule
	log  *slog.Logger
	open *os.File

	astray error     // why what has the name now can't be used; nil: it is what is written, or was not looked at
	looked time.Time // when that was tried last
}

// retryPause is the time between two tries to open a file again.
const retryPause = time.Second

// openFile opens the file what of o at path. how is the flags of open(2).
func openFile(o Options, what, path string, how int) (*file, error) {
	// Anyone who may replace the file could hide recorded changes.
	trust := &guard.Trust{Owners: []uint32{}, Private: become.PrivateGroup}
	switch {
	case !o.Root:
		trust.Owners = []uint32{uint32(os.Geteuid())}
	case o.Worker != 0: // otherwise disable_user_check is set
		trust.Never = []uint32{o.Worker}
	}
	f := &file{path: path, log: o.Log, rule: guard.Rule{What: what, Owners: []uint32{uint32(os.Geteuid())}, Secret: true, Create: how, Trust: trust}}
	if path[0] != '/' {
		return nil, errs.New(errs.Invalid, "%s %s: not an absolute path", what, path).WithHint("use a path as /var/log/schedrestd/audit.log")
	}
	return f, f.reopen()
}

// reopen opens the file, or creates it. Only this process's user owns it and
// has access.
func (f *file) reopen() error {
	opened, _, err := guard.Open(f.path, f.rule)
	dir := filepath.Dir(f.path)
	switch _, gone := os.Lstat(dir); {
	case err == nil:
	case errors.Is(gone, os.ErrNotExist):
		return errs.New(errs.Invalid, "%s %s: its directory is not there", f.rule.What, f.path).WithHint("install -d -m 0700 %s", guard.Quote(dir))
	case errs.KindOf(err) == errs.Denied && os.Geteuid() == 0:
		return errs.New(errs.Denied, "%v", err).WithHint("chown root:root %s and its directory: a running gateway has no right to what belongs to others", guard.Quote(f.path))
	case errs.HintOf(err) == "":
		return errs.New(errs.KindOf(err), "%v", err).WithHint("ls -ld %s", guard.Quote(f.path))
	default:
		return err
	}
	if f.open != nil {
		f.open.Close()
	}
	f.open, f.astray = opened, nil
	return nil
}

// endsTorn reports whether the file ends within a line, as far as that can be
// read: the descriptor that the auditor gets can't be read.
func (f *file) endsTorn() bool {
	info, err := f.open.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	fd, err := unix.Open(f.path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return true
	}
	again := os.NewFile(uintptr(fd), f.path)
	defer again.Close()
	same, err := again.Stat()
	last := make([]byte, 1)
	if err == nil && os.SameFile(info, same) {
		_, err = again.ReadAt(last, info.Size()-1)
	}
	return err != nil || last[0] != '\n'
}

// follow checks whether the file still has its name, and otherwise opens the
// file that now has the name. It is an error if the file was removed and no
// other can be opened, because the lines would be lost. A file that was moved
// away, as by a rotation without SIGHUP, is written until another can be
// opened.
func (f *file) follow() (changed bool, err error) {
	var ours, named unix.Stat_t
	if err := unix.Fstat(int(f.open.Fd()), &ours); err != nil {
		return false, fmt.Errorf("look at the audit log: %w", err)
	}
	if err := unix.Lstat(f.path, &named); err == nil && named.Dev == ours.Dev && named.Ino == ours.Ino {
		return false, nil
	}
	removed := ours.Nlink == 0
	if now := time.Now(); f.astray == nil || now.Sub(f.looked) >= retryPause {
		first := f.astray == nil
		f.looked = now
		if f.astray = f.reopen(); f.astray == nil {
			f.log.Warn("the audit log was moved or removed, and is opened again by its name", "removed", removed)
			return true, nil
		}
		if first {
			f.log.Error("the audit log was moved or removed, and can't be opened again", errs.LogAttrs(errs.HintOf(f.astray), "removed", removed, "error", f.astray)...)
		}
	}
	if removed {
		return false, fmt.Errorf("its file was removed: %w", f.astray)
	}
	return false, nil
}
