// Package thread runs functions on separate operating system threads.
// Namespaces, capabilities, no_new_privs and the death signal of children
// belong to a thread, so code that depends on them has to stay on one thread.
package thread

import (
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// SpareCount is the number of threads that the parent and the dispatcher each
// create when they start. Whenever all threads are in a system call, Go starts
// another thread. If the kernel does not permit that, Go ends the process. So a
// worker that creates threads up to the limit of the service or user could end
// the parent or the dispatcher. Spare threads prevent this, because Go keeps
// idle threads and uses them first. docs/design/PRIVSEP.md explains why no limit
// on the workers prevents it.
//
// Both processes run Go code on one thread at a time. On an overloaded machine
// the parent needed at most 2 threads more than it had at its start, and the
// dispatcher at most 4, however many workers there were.
const SpareCount = 8

// Reserve makes n threads, which Go keeps.
func Reserve(n int) {
	var started, finished sync.WaitGroup
	release := make(chan struct{})
	for range n {
		started.Add(1)
		finished.Go(func() {
			runtime.LockOSThread() // so that the next goroutine needs another thread
			defer runtime.UnlockOSThread()
			started.Done()
			<-release
		})
	}
	started.Wait()
	close(release)
	finished.Wait()
}

// SetNice sets the nice value of all threads of this process (setpriority(2)),
// if the process may do so. It keeps any value other than 0, because the
// administrator has chosen it. Later threads and processes inherit the value.
func SetNice(nice int) {
	if n, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil && n == NoNice {
		_, _, _ = syscall.AllThreadsSyscall(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 0, uintptr(nice))
	}
}

// AcceptorNice is the nice value of the processes that accept connections, if
// root starts them: the gateway's parent and the bundled daemons. The kernel
// refuses connections while a socket's queue is full. If such a process had
// only as much processor time as each of a client's threads, a client with a
// few threads could open connections faster than the process accepts and
// closes them. Users' processes that it starts have the nice value 0 (package
// stage).
const AcceptorNice = -10

// NoNice is the value of getpriority(2) for the nice value 0. The system call
// returns higher values for threads with a higher priority.
const NoNice = 20

// Thread is a thread that runs one function at a time until Stop is called.
type Thread struct {
	jobs chan func()
	done chan struct{}
}

// Start starts a thread and calls prepare on it. If prepare returns an error,
// the thread ends.
func Start(prepare func() error) (*Thread, error) {
	t := &Thread{make(chan func()), make(chan struct{})}
	ready := make(chan error)
	go runLocked(func() {
		err := prepare()
		ready <- err
		for err == nil {
			select {
			case job := <-t.jobs:
				job()
			case <-t.done:
				return
			}
		}
	})
	return t, <-ready
}

// Do calls job on the thread and waits until job returns. If the thread has
// been stopped, Do returns false and does not call job.
func (t *Thread) Do(job func()) bool {
	done := make(chan struct{})
	select {
	case t.jobs <- func() { job(); close(done) }:
		<-done
		return true
	case <-t.done:
		return false
	}
}

// Stop ends the thread. The kernel then kills the processes whose death signal
// depends on the thread. Stop does nothing on a nil Thread.
func (t *Thread) Stop() {
	if t != nil {
		close(t.done)
	}
}

// runLocked calls f on a locked thread, which ends when f returns. The
// goroutine that calls runLocked must do nothing else. runLocked never uses the
// process's first thread, because that thread does not end, and because /proc
// reports its state as the state of the process. If runLocked is called on the
// first thread, it calls f on another thread and returns immediately.
func runLocked(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		f()
		return
	}
	defer runtime.UnlockOSThread()
	started := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(started)
		f()
	}()
	<-started
}
