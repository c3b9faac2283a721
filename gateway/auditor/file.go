package auditor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
)

// sink receives the lines. Only one goroutine uses it.
type sink interface {
	// append appends text to the file, and returns how many bytes of this text
	// are now in the file.
	append(text []byte) (int, error)
}

// errSync is the error that append returns if it is unknown whether the lines
// are in the file.
var errSync = errors.New("sync the audit log")

// A file writes the lines of the audit log. It uses the openFile that the
// parent sent last.
type file struct {
	checkPath func() error // asks the parent whether the log's path still leads to the active file; the parent may send another file before it answers

	mu        sync.Mutex // guards next
	next      *openFile  // received, but not used yet
	active    *openFile
	lastCheck time.Time // when the parent last confirmed that the path leads to this file
}

// openFile is a file that the parent sent.
type openFile struct {
	*os.File
	info ipc.LogFD
	tail tail
}

// checkPause is how long the parent's answer stays valid. If the last answer is
// older, append asks the parent again before it writes a batch of lines.
const checkPause = time.Millisecond

// use makes f write all further lines to descriptor fd.
func (f *file) use(fd int, m *ipc.LogFD) {
	to := &openFile{File: os.NewFile(uintptr(fd), "audit log"), info: *m}
	to.tail = tail{to.File, m.Torn}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next != nil {
		f.next.Close()
	}
	f.next = to
}

// current returns the file to write to.
func (f *file) current() *openFile {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next != nil {
		if f.active != nil {
			f.active.Close()
		}
		f.active, f.next = f.next, nil
	}
	return f.active
}

// append appends text to the file, and returns how many bytes of this text are
// now in the file. If LogFD.Sync is set, these bytes are also on the disk.
func (f *file) append(text []byte) (int, error) {
	to := f.current()
	if now := time.Now(); to.info.Path != "" && now.Sub(f.lastCheck) >= checkPause {
		if err := f.checkPath(); err != nil {
			return 0, err
		}
		f.lastCheck = now
		to = f.current() // the parent may have sent another file
	}
	n, err := to.tail.append(text)
	if n > 0 && to.info.Sync {
		if err := unix.Fdatasync(int(to.Fd())); err != nil {
			// After an error, the kernel may have dropped data that it could
			// not write. So it is unknown which lines are in the file.
			return 0, fmt.Errorf("%w: %w", errSync, err)
		}
	}
	return n, err
}

// A tail appends to a file, and knows whether the file ends with a partial
// line.
type tail struct {
	to   io.Writer
	torn bool // the file ends with a partial line, which a full disk cut off
}

// append appends text, and returns how many bytes of this text are now in the
// file. If the file ends with a partial line, append first writes a line break.
// Without this line break, a reader would take the partial line for the
// beginning of the next line. A line that lacks only its line break is counted
// as written.
func (t *tail) append(text []byte) (int, error) {
	head := 0
	if t.torn {
		text, head = append([]byte(partialEnd), text...), len(partialEnd)
	}
	n, err := t.to.Write(text)
	if n > 0 {
		t.torn = text[n-1] != '\n'
	}
	if n > head && n < len(text) && text[n] == '\n' {
		n++
	}
	return max(0, n-head), err
}
