package thread

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// TestThread checks that each job runs on the thread on which prepare ran,
// until Stop is called. That thread must not be the process's first thread.
func TestThread(t *testing.T) {
	var prepared int
	thread, err := Start(func() error { prepared = unix.Gettid(); return nil })
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if !thread.Do(func() {
			if id := unix.Gettid(); id != prepared || id == unix.Getpid() {
				t.Errorf("a job runs on thread %d; %d was prepared, %d is the first", id, prepared, unix.Getpid())
			}
		}) {
			t.Error("a job of a running thread was left out")
		}
	}
	thread.Stop()
	if thread.Do(func() { t.Error("a job of a stopped thread") }) {
		t.Error("Do reports that a stopped thread has run a job")
	}
	failure := errors.New("no")
	if _, err := Start(func() error { return failure }); err != failure {
		t.Errorf("a thread that can't be prepared: %v", err)
	}
}
