package main

import (
	"io"
	"os"
	"runtime/debug"
	"syscall"
	"time"
)

// abortIfRequested ends the process with SIGABRT if ABORT_ON_FATAL is set. It
// first prints the stacks of all goroutines. The process leaves a core file
// only if no listener is open yet, because its memory contains secrets after
// that.
func abortIfRequested(errOut *os.File) {
	if os.Getenv("ABORT_ON_FATAL") == "" {
		return
	}
	_, _ = io.WriteString(errOut, "aborting: ABORT_ON_FATAL is set\n")
	debug.SetTraceback("crash") // the runtime prints the stacks, and does not change the effect of the signal
	_ = syscall.Kill(os.Getpid(), syscall.SIGABRT)
	time.Sleep(time.Minute) // another thread may get the signal
}
