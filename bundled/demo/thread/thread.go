// Package thread handles settings that the kernel applies to a thread and not
// to a process. Such settings need care, because goroutines move between
// threads.
package thread

import (
	"os/exec"
	"runtime"
	"sync"
)

// startRequests returns a channel of functions that start processes. A thread
// that never exits calls these functions.
var startRequests = sync.OnceValue(func() chan<- func() {
	list := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range list {
			start()
		}
	}()
	return list
})

// Start starts cmd on a thread that exits only when this process does. The
// kernel sends Pdeathsig to a child when the thread that started the child
// exits. Other threads may exit earlier, for example when a goroutine that has
// called LockOSThread returns.
func Start(cmd *exec.Cmd) error {
	started := make(chan error)
	startRequests() <- func() { started <- cmd.Start() }
	return <-started
}
