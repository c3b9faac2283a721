// Package thread is for what the kernel ties to a thread and not to a process, while a goroutine runs on whichever is free.
package thread

import (
	"os/exec"
	"runtime"
	"sync"
)

// births are processes to start, by one thread that never ends.
var births = sync.OnceValue(func() chan<- func() {
	list := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range list {
			start()
		}
	}()
	return list
})

// Start starts cmd on a thread that lives as long as this process. The kernel sends a child its Pdeathsig when the thread that
// started it ends, and any may end: one on which a goroutine returns that called LockOSThread does, whatever it did before.
func Start(cmd *exec.Cmd) error {
	started := make(chan error)
	births() <- func() { started <- cmd.Start() }
	return <-started
}
