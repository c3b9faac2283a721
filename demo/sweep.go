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

// adopt makes this process the one that orphans below it fall to.
func adopt() error {
	err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	return errs.Wrap(err, errs.Internal, "become a child subreaper")
}

// How long the end of the demo may be held up.
const (
	sweepGently = 2 * time.Second // by step processes that clean up after their jobs
	sweepLimit  = 6 * time.Second // by processes that can't be killed: they are another user's, or hang in the kernel
)

// sweep ends all that was ever started below this process and is still there.
// Children that os/exec waits for must have been waited for before.
//
// The children left by then are the steps of jobs, whose controller is gone: they are asked to end,
// because each has a control group to remove. What the steps have started is killed. Killing a
// process hands its children to its step, or to this one, so the list is made anew until the
// kernel says that there are no children any more.
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
		refused = errors.New("they do not end")
	}
	return errs.Wrap(refused, errs.Internal, "some processes of the demo are still running")
}

// split parts the children of parent from those further down.
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

// reap waits for the children that have ended, for a moment when none has, and says
// whether there is no child left.
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

// remove deletes the demo's directory, following no link in it.
func remove(dir string) error {
	return errs.Wrap(os.RemoveAll(dir), errs.Internal, "remove %s", dir)
}
