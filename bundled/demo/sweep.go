package demo

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/bundled/ctld/process"
	"schedrestd/internal/errs"
)

// becomeSubreaper makes this process the parent of all descendants whose own
// parent exits.
func becomeSubreaper() error {
	err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	return errs.Wrap(err, errs.Internal, "become a child subreaper")
}

// These times limit how long the demo may take to end.
const (
	sweepGrace   = 2 * time.Second // for step processes to clean up after their jobs
	sweepTimeout = 6 * time.Second // until sweep gives up on processes of other users and on processes that hang in the kernel
)

// sweep kills all descendants of this process. The caller must have waited for
// all children that os/exec started.
//
// The remaining children are step processes, which run jobs. The controller
// that started them has exited. A step process must remove the control group of
// its job. So until sweepGrace has passed, sweep sends only SIGTERM to step
// processes. It kills all other descendants immediately. The children of a
// killed process become children of a step process or of this process. So sweep
// lists and signals the processes again until this process has no children or
// sweepTimeout has passed.
func sweep() error {
	var killErr error
	for startedAt := time.Now(); time.Since(startedAt) < sweepTimeout; {
		remaining, err := process.Descendants(os.Getpid())
		if err != nil {
			return err
		}
		var steps []process.Stat
		if time.Since(startedAt) < sweepGrace {
			remaining, steps = splitChildren(remaining, os.Getpid())
		}
		_, killErr = process.SignalAll(remaining, syscall.SIGKILL)
		process.SignalAll(steps, syscall.SIGTERM)
		if reap() {
			return nil
		}
	}
	if killErr == nil {
		killErr = errors.New("they do not exit")
	}
	return errs.Wrap(killErr, errs.Internal, "some processes of the demo are still running")
}

// splitChildren splits list. The children result contains the children of the
// process whose id is parent. The descendants result contains all other
// processes.
func splitChildren(list []process.Stat, parent int) (descendants, children []process.Stat) {
	for _, st := range list {
		if st.Parent == parent {
			children = append(children, st)
		} else {
			descendants = append(descendants, st)
		}
	}
	return descendants, children
}

// reap collects all children that have exited, and reports whether no children
// are left. If children are left, reap first waits briefly for them to exit.
func reap() (done bool) {
	for slept := false; ; {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR || pid > 0:
		case err != nil: // ECHILD
			return true
		case slept:
			return false
		default:
			time.Sleep(5 * time.Millisecond)
			slept = true
		}
	}
}

// remove deletes the demo's directory. It does not follow links in the
// directory.
func remove(dir string) error {
	return errs.Wrap(os.RemoveAll(dir), errs.Internal, "remove %s", dir)
}
