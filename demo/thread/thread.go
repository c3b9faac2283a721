// Package thread handles settings that the kernel ties to a thread instead of a
// process. That needs care, because goroutines move between threads.
package thread

import (
	"os/exec"
	"runtime"
	"sync"
)

// startRequests returns a channel of functions that start processes. One
// thread, which never exits, calls them.
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

// Start starts cmd on a thread that lives as long as this process. The kernel
// sends Pdeathsig to a child when the thread that started it exits. Any other
// thread may exit earlier, for example when a goroutine that has called
// LockOSThread returns.
func Start(cmd *exec.Cmd) error {
	started := make(chan error)
	startRequests() <- func() { started <- cmd.Start() }
	return <-started
}
