package main

import (
	"io"
	"os"
	"runtime/debug"
	"syscall"
	"time"
)

// abortIfRequested ends the process with SIGABRT if ABORT_ON_FATAL is set. It
// first prints the stacks of all goroutines. Once a listener is open, the
// process leaves no core file, because its memory then contains secrets.
func abortIfRequested(errOut *os.File) {
	if os.Getenv("ABORT_ON_FATAL") == "" {
		return
	}
	_, _ = io.WriteString(errOut, "aborting: ABORT_ON_FATAL is set\n")
	debug.SetTraceback("crash") // the runtime prints all stacks, and SIGABRT still ends the process
	_ = syscall.Kill(os.Getpid(), syscall.SIGABRT)
	time.Sleep(time.Minute) // another thread may get the signal
}
