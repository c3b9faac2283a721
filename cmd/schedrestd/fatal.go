package main

import (
	"io"
	"os"
	"runtime/debug"
	"syscall"
	"time"
)

// abortIfRequested ends the process with SIGABRT if ABORT_ON_FATAL is set.
// Before the process ends, it prints the stacks of all goroutines. A process
// that has opened a listener leaves no core file, because its memory contains
// secrets.
func abortIfRequested(errOut *os.File) {
	if os.Getenv("ABORT_ON_FATAL") == "" {
		return
	}
	_, _ = io.WriteString(errOut, "aborting: ABORT_ON_FATAL is set\n")
	debug.SetTraceback("crash") // makes the runtime print all stacks before SIGABRT ends the process
	_ = syscall.Kill(os.Getpid(), syscall.SIGABRT)
	time.Sleep(time.Minute) // another thread may get the signal
}
