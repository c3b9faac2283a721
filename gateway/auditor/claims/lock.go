package claims

import (
	"os"

	"golang.org/x/sys/unix"
)

// A lockedFile is an open file with POSIX locks, which belong to this process.
// Locks of the open file description (F_OFD_SETLK) would be useless here. The
// parent gives several processes the same open file description, so they would
// share its locks.
type lockedFile struct{ *os.File }

// Open returns the file with descriptor fd. The process must have no other
// descriptor for this file, because closing the other descriptor would release
// the locks.
func Open(fd int) File { return lockedFile{os.NewFile(uintptr(fd), "idempotency file")} }

// Offsets of the bytes that are locked. They are after the last slot.
const (
	changeLock   = int64(Slots)*slotSize + iota // locked while a process reads and writes claims
	presenceLock                                // locked (shared) as long as a process uses the file
)

func (f lockedFile) lock(cmd int, kind int16, at int64) error {
	l := unix.Flock_t{Type: kind, Start: at, Len: 1}
	for {
		if err := unix.FcntlFlock(f.Fd(), cmd, &l); err != unix.EINTR {
			return err
		}
	}
}

func (f lockedFile) Lock() error { return f.lock(unix.F_SETLKW, unix.F_WRLCK, changeLock) }
func (f lockedFile) Unlock()     { _ = f.lock(unix.F_SETLK, unix.F_UNLCK, changeLock) }

// Sync calls fdatasync, which also writes the length of the file.
func (f lockedFile) Sync() error { return unix.Fdatasync(int(f.Fd())) }

func (f lockedFile) IsOnlyUser() bool {
	onlyUser := f.lock(unix.F_SETLK, unix.F_WRLCK, presenceLock) == nil
	_ = f.lock(unix.F_SETLKW, unix.F_RDLCK, presenceLock)
	return onlyUser
}
