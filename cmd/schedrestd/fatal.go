package main

import (
	"io"
	"os"
	"runtime/debug"
	"syscall"

	"schedrestd/conf"
)

// abortIfAsked ends the process by SIGABRT when ABORT_ON_FATAL is set, with the stacks of all that
// ran, and with a core file if this process may still leave one: once listeners are open it may
// not, for it has what nobody may read.
func abortIfAsked(errOut io.Writer) {
	if v, _ := conf.Env("ABORT_ON_FATAL"); v == "" {
		return
	}
	_, _ = io.WriteString(errOut, "aborting: ABORT_ON_FATAL is set\n")
	debug.SetTraceback("crash") // the runtime prints the stacks, and lets the signal have its way
	_ = syscall.Kill(os.Getpid(), syscall.SIGABRT)
	select {}
}
