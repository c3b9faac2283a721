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

// sink is where lines go. One goroutine uses it.
type sink interface {
	// append writes text behind what is there and tells how much of it is in the file.
	append(text []byte) (int, error)
}

// errUnsure says that lines may be in the file, or not.
var errUnsure = errors.New("sync the audit log")

// file is the open file that the parent gave last.
type file struct {
	follow func() error // asks the parent whether it still has its name

	mu     sync.Mutex // guards next
	next   *opened    // given, and not used yet
	now    *opened
	looked time.Time // when the parent was asked last
}

// opened is one file.
type opened struct {
	*os.File
	is   ipc.LogFD
	tail tail
}

// followPause is how long the parent's answer is good: it is asked for each batch of lines, and not more often.
const followPause = time.Millisecond

// use has lines go to fd from now on.
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

// append writes at the end of the file. What of it is there is on the disk as well, when that is asked for.
func (f *file) append(text []byte) (int, error) {
	to := f.current()
	if now := time.Now(); to.is.Named && now.Sub(f.looked) >= followPause {
		if err := f.follow(); err != nil {
			return 0, err
		}
		f.looked = now
		to = f.current() // the answer may have brought another one
	}
	n, err := to.tail.append(text)
	if n > 0 && to.is.Sync {
		if err := unix.Fdatasync(int(to.Fd())); err != nil {
			// What the kernel could not bring to the disk it may have forgotten.
			return 0, fmt.Errorf("%w: %w", errUnsure, err)
		}
	}
	return n, err
}

// tail is the end of what lines are written to.
type tail struct {
	to   io.Writer
	torn bool // it ends within a line, which a full disk cut off
}

// append tells how much of text is there. Half a line that was written before stays alone: what is cut off is no
// JSON, and nothing of it is taken for the next one's. A line that lacks its end alone is there: whoever reads it has it all.
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
