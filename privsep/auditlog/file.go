package auditlog

import (
	"fmt"
	"log/slog"
	"os"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
)

// file is the open audit log, or the open file of Idempotency-Keys. The parent
// opens it by its name, and the auditor writes to it.
type file struct {
	path   string
	rule   guard.Rule
	log    *slog.Logger
	osFile *os.File

	reopenFailed bool // the last reopen failed, which was logged
}

// openFile opens the file at path, or creates it, with the given flags of
// open(2). In errors, label is the name of the file.
func openFile(o Options, label, path string, flags int) (*file, error) {
	// Anyone who can replace the file could hide recorded changes.
	trust := &guard.Trust{Owners: []uint32{}, PrivateGroup: become.PrivateGroup}
	switch {
	case !o.Root:
		trust.Owners = []uint32{uint32(os.Geteuid())}
	case o.WorkerUID != 0: // otherwise disable_user_check is set
		trust.ForbiddenOwners = []uint32{o.WorkerUID}
	}
	f := &file{path: path, log: o.Log, rule: guard.Rule{Label: label, Owners: []uint32{uint32(os.Geteuid())}, Secret: true, CreateFlags: flags, Trust: trust}}
	return f, f.reopen()
}

// reopen opens the file, or creates it. The file must belong to this process's
// user, and no other user may have access.
func (f *file) reopen() error {
	opened, _, err := guard.Open(f.path, f.rule)
	if err != nil {
		return guard.CreationError(f.path, err)
	}
	f.osFile.Close() // has no effect on nil
	f.osFile = opened
	return nil
}

// endsMidLine reports whether the file ends in the middle of a line. The
// descriptor for the auditor is not open for reading, so endsMidLine opens the
// file again. If it can't open the file, it returns true.
func (f *file) endsMidLine() bool {
	info, err := f.osFile.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	last := []byte{0}
	if reader, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", f.osFile.Fd())); err == nil {
		defer reader.Close()
		_, _ = reader.ReadAt(last, info.Size()-1)
	}
	return last[0] != '\n'
}

// reopenIfMoved opens the file again if its name now leads to another file, or
// if force is true. After a rotation without SIGHUP, the auditor writes to the
// moved file until reopenIfMoved can open a new one. If the file was removed
// and no other file can be opened, reopenIfMoved returns an error, because
// lines would be lost.
func (f *file) reopenIfMoved(force bool) (changed bool, err error) {
	var openStat, namedStat unix.Stat_t
	if err := unix.Fstat(int(f.osFile.Fd()), &openStat); err != nil {
		return false, fmt.Errorf("inspect the audit log: %w", err)
	}
	if err := unix.Lstat(f.path, &namedStat); err == nil && namedStat.Dev == openStat.Dev && namedStat.Ino == openStat.Ino && !force {
		return false, nil
	}
	moved, removed, failedBefore := !force, openStat.Nlink == 0, f.reopenFailed
	err = f.reopen()
	f.reopenFailed = err != nil
	switch {
	case err == nil && moved:
		f.log.Warn("audit log moved or removed; reopening it", "removed", removed)
	case err == nil:
		f.log.Info("audit log reopened")
	case force || !failedBefore:
		f.log.Error("audit log not reopened", errs.LogAttrs(errs.HintOf(err), "removed", removed, "error", err)...)
	}
	if err != nil && removed {
		return false, fmt.Errorf("its file was removed: %w", err)
	}
	return err == nil, nil
}
