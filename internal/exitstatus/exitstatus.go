// Package exitstatus interprets the status of a process that has ended, as
// returned by wait(2).
package exitstatus

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// OK is the result of Describe for a process that exited without an error.
const OK = "exit status 0"

// Describe returns a description of ws for logs.
func Describe(ws unix.WaitStatus) string {
	if ws.Signaled() {
		return fmt.Sprintf("killed by signal %d (%s)", ws.Signal(), syscall.Signal(ws.Signal()))
	}
	return fmt.Sprintf("exit status %d", ws.ExitStatus())
}
