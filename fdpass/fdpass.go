// Package fdpass protects processes that accept connections on UNIX sockets
// from descriptors that a peer sends over them (SCM_RIGHTS). If read(2) or
// close(2) drops a message with descriptors, the call closes these descriptors.
// If one of them is a lingering TCP socket, the call can sleep for as long as
// the sender likes, past every deadline, and block the thread.
//
// Since Linux 6.16, Refuse makes the kernel reject messages with descriptors
// when they are sent. On older kernels, and on connections that were made
// before Refuse, calls of read(2) and close(2) must run in Do, which wakes a
// sleeping thread. Package unixconn does this. So do Close, which closes a
// descriptor, and Release, which closes a connection.
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
// gets EPERM. fd must be a UNIX socket that listens or is not connected yet.
// Connections that are accepted from it reject descriptors too. Refuse has no
// effect before Linux 6.16.
func Refuse(fd int) { _ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 0) }

const (
	// wakeDelay is how long a call in Do may take before its thread is woken.
	// If a call takes longer for another reason than a lingering socket, the
	// needless signal does no harm.
	wakeDelay = 5 * time.Millisecond

	// maxCalls limits the number of threads in Do. All these threads can
	// sleep at the same time, and the runtime starts another thread for each of
	// them. Further calls of Do wait.
	maxCalls = 16
)

// callSlot is a slot for one call of Do.
type callSlot struct {
	timer  *time.Timer
	thread atomic.Int64 // id of the thread in the call; 0: none
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

// wake interrupts the thread in the call, and schedules itself again, because
// the signal may have come just before the thread slept. The runtime itself
// interrupts threads with SIGURG, so additional signals do no harm.
func (c *callSlot) wake() {
	if thread := c.thread.Load(); thread != 0 {
		_ = unix.Tgkill(unix.Getpid(), int(thread), syscall.SIGURG)
		c.timer.Reset(wakeDelay)
	}
}

// Do calls f, and wakes the thread that runs f if that thread sleeps. f makes
// one system call. The call may close descriptors that a peer sent, and must
// have no other reason to wait.
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
// the caller may hold a lock or have other clients to serve.
func Close(fd int) {
	select {
	case closeQueue() <- fd:
	default:
		go func() { closeQueue() <- fd }() // a blocked goroutine needs no thread
	}
}

// Release closes c. The kernel drops unread messages when the last descriptor
// of the connection is closed, so this must happen in Do. Therefore Release
// closes a copy of the descriptor last. Without the copy, package net would
// close the last descriptor outside Do, at the end of a Read or Write that is
// in progress.
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
