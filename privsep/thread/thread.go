// Package thread makes operating system threads that one goroutine has to itself.
package thread

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// Spare is how many threads the parent makes at its start. Go starts one more whenever each that it has
// is in a system call, and ends the process when the kernel has none: so a worker that takes what the limit
// of the service or of the user leaves would end the parent, and with it everything. Those that are idle are kept.
//
// Needed at one time: one that runs, two of the runtime's own, one that hears signals, the spawners', the outlet's, one for the log,
// two for the audit log's file, two for files that are followed, and one that rereads the configuration. Those are twelve; on a busy machine
// a call that is short keeps its thread for long.
const Spare = 32

// Reserve makes n threads, which stay.
func Reserve(n int) {
	var there, over sync.WaitGroup
	end := make(chan struct{})
	for range n {
		there.Add(1)
		over.Go(func() {
			runtime.LockOSThread() // so that the next one needs another
			defer runtime.UnlockOSThread()
			there.Done()
			<-end
		})
	}
	there.Wait()
	close(end)
	over.Wait()
}

// Locked calls do on a thread that ends with it. It is not the process's first one, which never ends and by which /proc
// says where the process is.
func Locked(do func()) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		do()
		return
	}
	defer runtime.UnlockOSThread()
	beside := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(beside)
		do()
	}()
	<-beside
}

// Thread is a thread of its own that runs functions, one after the other.
type Thread struct {
	jobs chan func()
	over chan struct{}
}

// Start makes a thread, which first calls prepare. It does not exist when that fails.
func Start(prepare func() error) (*Thread, error) {
	t := &Thread{make(chan func()), make(chan struct{})}
	ready := make(chan error)
	go Locked(func() { // and never unlocked: it ends with what prepare did to it
		err := prepare()
		ready <- err
		for err == nil {
			select {
			case job := <-t.jobs:
				job()
			case <-t.over:
				return
			}
		}
	})
	if err := <-ready; err != nil {
		return nil, err
	}
	return t, nil
}

// Do runs job on the thread, and returns when it is done. It reports false when the
// thread has stopped.
func (t *Thread) Do(job func()) bool {
	done := make(chan struct{})
	select {
	case t.jobs <- func() { job(); close(done) }:
		<-done
		return true
	case <-t.over:
		return false
	}
}

// Stop ends the thread after the job that it runs.
func (t *Thread) Stop() { close(t.over) }
