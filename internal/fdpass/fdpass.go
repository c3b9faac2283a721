// Package fdpass protects a server on a UNIX socket against file descriptors
// that clients send to it (SCM_RIGHTS). If read(2) or close(2) drops a message
// with descriptors, the call closes these descriptors. If one of them is a
// lingering TCP socket, the call can block its thread for as long as the client
// likes, past every deadline.
//
// On Linux 6.16 and later, Refuse makes the kernel reject a message with
// descriptors when the client sends it. On older kernels, and on connections
// that were made before Refuse, calls to read(2) and close(2) must run in Do,
// which wakes the thread if it sleeps. Package unixconn uses Do for its calls.
// Close closes a descriptor in Do, and Release closes a connection in Do.
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

// Refuse makes the kernel reject descriptors that are sent to fd. The sender
// gets EPERM. The fd argument must refer to a UNIX socket that is listening or
// not yet connected. Connections accepted from this socket reject descriptors
// too. Refuse has no effect before Linux 6.16.
func Refuse(fd int) { _ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 0) }

// Refuses reports whether no descriptor can have arrived over the connection or
// listening socket fd: Refuse was called in time, and the kernel supports it. A
// program must not call Refuse for a connection that it has accepted, because
// descriptors may already have arrived. A UNIX connection that refuses
// descriptors can be closed without Do.
func Refuses(fd int) bool {
	passes, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSRIGHTS)
	return err == nil && passes == 0
}

const (
	// wakeDelay is the time after which Do interrupts a call with a signal. If
	// the call takes longer for a reason other than a lingering socket, the
	// signal does no harm.
	wakeDelay = 5 * time.Millisecond

	// maxCalls limits the concurrent calls to Do, because each of them can
	// block a thread, and the runtime then starts another thread. Further calls
	// wait.
	maxCalls = 16
)

// callSlot is a slot for one call of Do.
type callSlot struct {
	timer  *time.Timer
	thread atomic.Int64 // id of the thread that makes the call; 0: none
}

var callSlots = sync.OnceValue(func() chan *callSlot {
	slots := make(chan *callSlot, maxCalls)
	for range maxCalls {
		c := new(callSlot)
		c.timer = time.AfterFunc(time.Hour, c.wake)
		c.timer.Stop()
		slots <- c
	}
	return slots
})

// wake interrupts the thread of the call. It then schedules itself again,
// because the signal is lost if it comes just before the thread sleeps. The
// runtime itself interrupts threads with SIGURG, so additional signals do no
// harm.
func (c *callSlot) wake() {
	if thread := c.thread.Load(); thread != 0 {
		_ = unix.Tgkill(unix.Getpid(), int(thread), syscall.SIGURG)
		c.timer.Reset(wakeDelay)
	}
}

// Do calls f, which makes a system call that may close descriptors sent by a
// peer. If the system call sleeps, Do interrupts it. The system call must have
// no other reason to sleep.
func Do(f func()) {
	slots := callSlots()
	c := <-slots
	runtime.LockOSThread()
	c.thread.Store(int64(unix.Gettid()))
	c.timer.Reset(wakeDelay)
	f()
	c.thread.Store(0)
	c.timer.Stop()
	runtime.UnlockOSThread()
	slots <- c
}

// closers limits the number of concurrent closes.
const closers = maxCalls / 2

var closeQueue = sync.OnceValue(func() chan int {
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

// Close makes another thread close fd soon. Close itself never waits, because
// the caller may hold a lock or have other clients to serve. If fd is a UNIX
// connection over which no descriptor can have arrived, Close closes it at once.
func Close(fd int) {
	if Refuses(fd) {
		unix.Close(fd)
		return
	}
	select {
	case closeQueue() <- fd:
	default:
		go func() { closeQueue() <- fd }() // a blocked goroutine needs no thread
	}
}

// Release closes c. The kernel drops unread messages when the last descriptor
// of the connection is closed. That close must run in Do, so Release makes a
// copy of the descriptor and closes the copy last. Without the copy, package
// net would close the last descriptor outside Do, at the end of a Read or Write
// that is in progress.
func Release(c interface {
	syscall.Conn
	io.Closer
}) error {
	lastFD := -1
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { lastFD, _ = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	}
	err := c.Close()
	if lastFD >= 0 {
		Do(func() { unix.Close(lastFD) })
	}
	return err
}
