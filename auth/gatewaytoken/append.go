package gatewaytoken

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ForRevocations is the room in a register, in bytes, that new tokens do not use: a
// register full of tokens must still be able to revoke them.
const ForRevocations = 256 << 10

// ForAdministrators is the part of it that users' revocations do not use.
const ForAdministrators = 128 << 10

// ErrFull is the error of an Append to a register without room.
var ErrFull = errors.New("no room")

// A LineError is the error of an Append to a register that has an error. Gateways
// refuse all tokens until the line is corrected.
type LineError struct{ Err error }

func (e *LineError) Error() string { return e.Err.Error() }
func (e *LineError) Unwrap() error { return e.Err }

// Append waits for the lock for at most lockTime.
const lockTime = time.Second

// Append adds lines to a register that is open for reading and appending, in one
// write, and returns when they are on the disk. It adds nothing to a register that
// has an error or would be longer than limit, because gateways refuse all tokens then.
//
// A lock keeps two processes from appending at the same time; on the file system of a
// server this could lose a line. Every user who may read the register can hold a
// lock, and must not be able to prevent a revocation. So after lockTime Append goes
// on without it, as a local file system makes each write in append mode one step. In
// the end Append reads its lines back.
//
// Append reserves the room on the disk first. Otherwise a full disk could cut the
// lines off, and the rest would be an error.
func Append(f *os.File, lines string, limit int) error {
	defer lockRegister(f)()
	text, err := ReadText(f)
	if err != nil {
		return err
	}
	if _, err := ParseRegister(text); err != nil { // without the lines: they must not continue its last one
		return &LineError{err}
	}
	if len(text)+len(lines) > limit {
		return ErrFull
	}
	err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, int64(len(text)), int64(len(lines)))
	if err != nil && err != unix.EOPNOTSUPP && err != unix.ENOSYS {
		return fmt.Errorf("reserve room on the disk: %w", err)
	}
	if _, err := io.WriteString(f, lines); err != nil {
		return err
	}
	if err := unix.Fdatasync(int(f.Fd())); err != nil {
		return err
	}
	text, err = ReadText(f)
	if err == nil && !bytes.HasPrefix(text, []byte(lines)) && !bytes.Contains(text, []byte("\n"+lines)) {
		err = errors.New("another process has overwritten the new lines")
	}
	return err
}

// lockRegister locks a register, or goes on without the lock after lockTime. It returns
// a function that unlocks it.
func lockRegister(f *os.File) (unlock func()) {
	lock := func(kind int16) error {
		return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind})
	}
	for end := time.Now().Add(lockTime); lock(unix.F_WRLCK) == unix.EAGAIN && time.Now().Before(end); {
		time.Sleep(lockTime / 50)
	}
	return func() { _ = lock(unix.F_UNLCK) }
}

// ReadText returns the content of a register.
func ReadText(f *os.File) ([]byte, error) {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, MaxRegister+1))
	if err == nil && len(text) > MaxRegister {
		err = fmt.Errorf("longer than %d bytes", MaxRegister)
	}
	return text, err
}
