// Package rights is for who takes connections at UNIX sockets and never wants a descriptor over them (SCM_RIGHTS). Anybody
// may send one all the same, and whoever drops the message, by read(2) or close(2), closes what was in it. That can sleep: in
// the close of a TCP socket that lingers for as long as its owner likes, past every deadline, with the thread.
//
// Refuse has the kernel turn such messages away at their sender, since Linux 6.16. What was sent before that was said, or comes
// on an older kernel, is dropped in Do, which wakes a thread that sleeps there: package unixconn reads and closes so, Close and Release close.
package rights

import (
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Refuse has the kernel refuse descriptors that are sent to fd, a UNIX socket that listens or is new, or to what connects there from now
// on, with EPERM at the sender. It does nothing before Linux 6.16.
func Refuse(fd int) { _ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 0) }

const (
	// patience is how long a call may take that has no reason to wait. Who takes longer for another reason is woken for
	// nothing, which harms nobody.
	patience = 5 * time.Millisecond

	// mostInside is how many threads may be in such calls at one time: all of them can be asleep, and each that is
	// needs another one in its place. Others wait.
	mostInside = 16
)

// call is a place for one that is under way.
type call struct {
	timer  *time.Timer
	thread atomic.Int64 // that is inside; 0: none
}

var calls = sync.OnceValue(func() chan *call {
	places := make(chan *call, mostInside)
	for range mostInside {
		c := new(call)
		c.timer = time.AfterFunc(time.Hour, c.wake)
		c.timer.Stop()
		places <- c
	}
	return places
})

// wake wakes the thread that is inside, and comes back: the first signal may have come just before it slept. SIGURG is what
// the runtime itself interrupts threads with, and any number of it is good.
func (c *call) wake() {
	if thread := c.thread.Load(); thread != 0 {
		_ = unix.Tgkill(unix.Getpid(), int(thread), syscall.SIGURG)
		c.timer.Reset(patience)
	}
}

// Do calls f, which makes one system call that could drop what a stranger sent, and has no other reason to wait.
func Do(f func()) {
	places := calls()
	c := <-places
	runtime.LockOSThread()
	c.thread.Store(int64(unix.Gettid()))
	c.timer.Reset(patience)
	f()
	c.thread.Store(0)
	c.timer.Stop()
	runtime.UnlockOSThread()
	places <- c
}

// closers is how many descriptors are closed at one time.
const closers = mostInside / 2

var closing = sync.OnceValue(func() chan int {
	list := make(chan int, 64)
	for range closers {
		go func() {
			for fd := range list {
				Do(func() { unix.Close(fd) })
			}
		}()
	}
	return list
})

// Close closes fd soon, and not in the caller's thread: he may hold a lock, or have others to serve. He never waits.
func Close(fd int) {
	select {
	case closing() <- fd:
	default:
		go func() { closing() <- fd }() // a goroutine, and no thread
	}
}

// Release closes c. What nobody has read goes with the last descriptor, so that this is one of ours: else it were closed by whoever
// happens to leave a Read or a Write of c's last.
func Release(c interface {
	syscall.Conn
	io.Closer
}) error {
	last := -1
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { last, _ = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	}
	err := c.Close()
	if last >= 0 {
		Do(func() { unix.Close(last) })
	}
	return err
}
