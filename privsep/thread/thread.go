// Package thread runs functions on an operating system thread of their own.
// Namespaces, capabilities, no_new_privs and the death signal of children
// belong to a thread, so code that depends on them has to stay on one thread.
package thread

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// SpareCount is how many threads the parent and the dispatcher create at their
// start. Go starts another thread whenever all existing ones are in a system
// call, and it ends the process if the kernel permits no further thread.
// Without spare threads, a worker could end the parent or the dispatcher: it
// could create threads until the service or the user may have no more. Spare
// threads prevent this, because Go keeps idle threads.
//
// The parent needs about twelve threads concurrently: one that runs, two of the
// runtime, one that receives signals, one for each spawner, one for the audit
// log's file, and those that open keys and reread the configuration. On a busy
// machine even a short call may occupy its thread for long.
const SpareCount = 32

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

// Thread is a thread that runs one function at a time until Stop.
type Thread struct {
	jobs chan func()
	done chan struct{}
}

// Start starts a thread and calls prepare on it. If prepare fails, the thread
// ends.
func Start(prepare func() error) (*Thread, error) {
	t := &Thread{make(chan func()), make(chan struct{})}
	ready := make(chan error)
	go RunLocked(func() {
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
	if err := <-ready; err != nil {
		return nil, err
	}
	return t, nil
}

// Do calls job on the thread and waits until it returns. If the thread has been
// stopped, Do returns false and does not call job.
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

// RunLocked calls f on a locked thread, which ends with its goroutine. The
// goroutine that calls RunLocked must do nothing else. f never runs on the
// process's first thread: that thread does not end, and /proc shows its state
// as that of the process. If RunLocked is called on the first thread, it calls
// f on another thread and returns immediately.
func RunLocked(f func()) {
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
