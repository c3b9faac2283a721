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

// sink is what lines are written to. One goroutine uses it.
type sink interface {
	// append writes text at the end, and returns how much of it is in the file.
	append(text []byte) (int, error)
}

// errUnsure reports that lines may or may not be in the file.
var errUnsure = errors.New("sync the audit log")

// file is the open file that the parent sent last.
type file struct {
	follow func() error // asks the parent whether the file still has its name

	mu     sync.Mutex // guards next
	next   *opened    // received, and not used yet
	now    *opened
	looked time.Time // when the parent was asked last
}

// opened is one file.
type opened struct {
	*os.File
	is   ipc.LogFD
	tail tail
}

// followPause is how long the parent's answer is valid: follow is called for
// each batch of lines, but not more often.
const followPause = time.Millisecond

// use makes fd the file for lines from now on.
func (f *file) use(fd int, m *ipc.LogFD) {
	to := &opened{File: os.NewFile(uintptr(fd), "audit log"), is: *m}
	to.tail = tail{to.File, m.Torn}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next != nil {
		f.next.Close()
	}
	f.next = to
}

// current returns the file to write to.
func (f *file) current() *opened {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next != nil {
		if f.now != nil {
			f.now.Close()
		}
		f.now, f.next = f.next, nil
	}
	return f.now
}

// append writes at the end of the file. With Sync, what it reports as written
// is on disk.
func (f *file) append(text []byte) (int, error) {
	to := f.current()
	if now := time.Now(); to.is.Named && now.Sub(f.looked) >= followPause {
		if err := f.follow(); err != nil {
			return 0, err
		}
		f.looked = now
		to = f.current() // the parent may have sent another file
	}
	n, err := to.tail.append(text)
	if n > 0 && to.is.Sync {
		if err := unix.Fdatasync(int(to.Fd())); err != nil {
			// The kernel may have dropped what it could not write.
			return 0, fmt.Errorf("%w: %w", errUnsure, err)
		}
	}
	return n, err
}

// tail is the end of what lines are written to.
type tail struct {
	to   io.Writer
	torn bool // it ends within a line that a full disk cut off
}

// append writes text, and returns how much of it is in the file. A line break
// separates it from a partial line that was written before, so that no reader
// takes that for the beginning of the next line. A line that lacks only its
// line break counts as written.
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
