package main

import (
	"io"
	"os"
	"runtime/debug"
	"syscall"
	"time"
)

// abortIfAsked ends the process by SIGABRT when ABORT_ON_FATAL is set, with the stacks of all that
// ran, and with a core file if this process may still leave one: once listeners are open it may
// not, for it has what nobody may read.
func abortIfAsked(errOut *os.File) {
	if os.Getenv("ABORT_ON_FATAL") == "" {
		return
	}
	_, _ = io.WriteString(writer(errOut), "aborting: ABORT_ON_FATAL is set\n")
	debug.SetTraceback("crash") // the runtime prints the stacks, and lets the signal have its way
	_ = syscall.Kill(os.Getpid(), syscall.SIGABRT)
	time.Sleep(time.Minute) // the signal may come to another thread
}
