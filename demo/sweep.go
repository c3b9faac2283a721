package demo

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ctld/process"
	"schedrestd/errs"
)

// adopt makes this process the parent of all orphans among its descendants.
func adopt() error {
	err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	return errs.Wrap(err, errs.Internal, "become a child subreaper")
}

// Limits on how long the end of the demo may take.
const (
	sweepGently = 2 * time.Second // for step processes to clean up after their jobs
	sweepLimit  = 6 * time.Second // for processes that can't be killed because they belong to another user or hang in the kernel
)

// sweep kills all remaining processes below this process. The caller must have
// waited for all children that os/exec started.
//
// The remaining children are the processes of job steps, whose controller has
// exited. For the time sweepGently, sweep sends the steps only SIGTERM, because
// each step must remove the control group of its job. It kills all other
// processes at once. When a process is killed, its children become children of
// the step or of this process. So sweep lists and signals the processes again
// until this process has no children.
func sweep() error {
	var refused error
	for begun := time.Now(); time.Since(begun) < sweepLimit; {
		left, err := process.Descendants(os.Getpid())
		if err != nil {
			return err
		}
		var asked []process.Stat
		if time.Since(begun) < sweepGently {
			left, asked = split(left, os.Getpid())
		}
		_, refused = process.SignalAll(left, syscall.SIGKILL)
		process.SignalAll(asked, syscall.SIGTERM)
		if reap() {
			return nil
		}
	}
	if refused == nil {
		refused = errors.New("they do not exit")
	}
	return errs.Wrap(refused, errs.Internal, "some processes of the demo are still running")
}

// split separates the children of parent from processes further down.
func split(list []process.Stat, parent int) (others, children []process.Stat) {
	for _, st := range list {
		if st.Parent == parent {
			children = append(children, st)
		} else {
			others = append(others, st)
		}
	}
	return others, children
}

// reap waits for children that have exited, and reports whether no child is
// left. If no child has exited yet, it pauses briefly.
func reap() (none bool) {
	for waited := false; ; {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR || pid > 0:
		case err != nil: // ECHILD
			return true
		case waited:
			return false
		default:
			time.Sleep(5 * time.Millisecond)
			waited = true
		}
	}
}

// remove deletes the demo's directory. It does not follow links in the
// directory.
func remove(dir string) error {
	return errs.Wrap(os.RemoveAll(dir), errs.Internal, "remove %s", dir)
}
