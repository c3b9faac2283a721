// Package fdpass protects processes that accept connections at UNIX sockets
// from descriptors that a peer sends over them (SCM_RIGHTS). The process that
// drops such a message, by read(2) or close(2), closes the descriptors in it.
// That can sleep in the close of a lingering TCP socket for as long as the
// sender likes, past every deadline, and block the thread.
//
// Refuse tells the kernel to reject such messages at their sender, since Linux
// 6.16. Messages that were sent before, or on an older kernel, are dropped in
// Do, which wakes a thread that sleeps there. Package unixconn reads and closes
// in this way; Close and Release close.
package fdpass

import (
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Refuse makes the kernel reject descriptors that are sent to fd, with EPERM at
// the sender. fd is a UNIX socket that listens or is new; connections accepted
// from it reject them too. It does nothing before Linux 6.16.
func Refuse(fd int) { _ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 0) }

const (
	// patience is how long a call without a reason to wait may take. A call
	// that takes longer for another reason is woken needlessly, which does no
	// harm.
	patience = 5 * time.Millisecond

	// mostInside limits the threads in such calls: all of them can sleep, and
	// the runtime starts another thread for each. More calls wait.
	mostInside = 16
)

// call is a place for one call.
type call struct {
	timer  *time.Timer
	thread atomic.Int64 // the thread in the call; 0: none
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

// wake interrupts the thread in the call, and schedules itself again: the first
// signal may have come just before the thread slept. The runtime itself
// interrupts threads with SIGURG, and any number of them is harmless.
func (c *call) wake() {
	if thread := c.thread.Load(); thread != 0 {
		_ = unix.Tgkill(unix.Getpid(), int(thread), syscall.SIGURG)
		c.timer.Reset(patience)
	}
}

// Do calls f, which makes one system call that could drop what a peer sent, and
// has no other reason to wait.
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

// closers limits concurrent closes.
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

// Close closes fd soon, in another thread: the caller may hold a lock, or have
// others to serve. It never waits.
func Close(fd int) {
	select {
	case closing() <- fd:
	default:
		go func() { closing() <- fd }() // a goroutine, not a thread
	}
}

// Release closes c. Unread messages are dropped with the last descriptor, so
// that must be one of ours. Otherwise the last Read or Write of c to return
// would close it.
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
