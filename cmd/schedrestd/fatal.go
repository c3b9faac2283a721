package main

import (
	"io"
	"os"
	"runtime/debug"
	"syscall"
	"time"
)

// abortIfAsked ends the process with SIGABRT when ABORT_ON_FATAL is set. It
// prints the stacks of all goroutines, and leaves a core file if the process
// may still do so: not once listeners are open, since its memory then holds
// secrets.
func abortIfAsked(errOut *os.File) {
	if os.Getenv("ABORT_ON_FATAL") == "" {
		return
	}
	_, _ = io.WriteString(errOut, "aborting: ABORT_ON_FATAL is set\n")
	debug.SetTraceback("crash") // the runtime prints the stacks, and leaves the signal its effect
	_ = syscall.Kill(os.Getpid(), syscall.SIGABRT)
	time.Sleep(time.Minute) // the signal may come to another thread
}
