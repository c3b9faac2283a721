package process

import "golang.org/x/sys/unix"

// isCrash reports whether a process crashed: the kernel sent it a signal for a
// fault, or it exited after a panic or a fatal error of Go's runtime. SIGKILL
// is not a crash, because it comes from the administrator or the OOM killer.
func isCrash(ws unix.WaitStatus) bool {
	if !ws.Signaled() {
		return ws.ExitStatus() == runtimeStatus
	}
	switch ws.Signal() {
	case unix.SIGSEGV, unix.SIGBUS, unix.SIGILL, unix.SIGFPE, unix.SIGTRAP, unix.SIGABRT, unix.SIGSYS:
		return true
	}
	return false
}

// isForbiddenCall reports whether the sandbox killed a process because of a
// system call.
func isForbiddenCall(ws unix.WaitStatus) bool { return ws.Signaled() && ws.Signal() == unix.SIGSYS }

// runtimeStatus is the exit status of a Go program after a panic or a fatal
// error.
const runtimeStatus = 2
