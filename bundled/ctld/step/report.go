package step

import (
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// The second stage writes reportExec immediately before it executes the script.
// If it fails, it writes the reason. The reason begins with reportJob if the
// job itself is the cause, for example because its working directory does not
// exist. So if the second stage ends before it has written anything, the
// script has certainly not run, and the job can be started again.
const (
	reportExec = "exec\n"
	reportJob  = "job\n"
)

// A faultError is an error that prevented the start of the script, and that has
// nothing to do with the job. For example, the machine is out of memory. A
// later start of the same job may succeed.
type faultError struct{ text string }

func (e *faultError) Error() string { return e.text }

// errNoReport is returned if the second stage ended without a report.
var errNoReport = errors.New("the process that starts the script ended early")

// isFault reports whether err comes from the machine or from a file system and
// may be gone later. All other errors are mistakes in the job.
func isFault(err error) bool {
	for _, errno := range []error{unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EIO, unix.EMFILE, unix.ENFILE, unix.EAGAIN,
		unix.ENOMEM, unix.ENOBUFS, unix.ESTALE, unix.ETIMEDOUT, unix.ENOTCONN, unix.EHOSTDOWN, unix.EREMOTEIO} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// readReport returns the error that the second stage reports. It returns nil if
// the second stage has started the script.
func readReport(pipe *os.File) error {
	defer pipe.Close()
	b, err := io.ReadAll(io.LimitReader(pipe, 1024))
	if err != nil {
		return &faultError{err.Error()}
	}
	text, executed := strings.CutPrefix(string(b), reportExec)
	text, ofJob := strings.CutPrefix(text, reportJob)
	switch {
	case executed && text == "":
		return nil
	case text == "":
		return errNoReport
	case ofJob:
		return errors.New(text)
	}
	return &faultError{text}
}
