package step

import (
	"errors"
	"slices"
	"syscall"
	"time"

	"schedrestd/ctld/process"
)

const (
	freezeRounds = 20                    // looks through /proc for what does not stand still yet
	chase        = 20 * time.Millisecond // after a chain of processes, each time
)

// killAll kills what is left of the job, and comes again until nothing is.
//
// A cgroup takes all of it in one go. Without one a process may fork between being listed
// and being killed, so that all are stopped first, until a look finds none that moves; the
// standing are then killed. What forks and ends at once, over and over, is not in a list
// long enough for that. But an abandoned process becomes this one's child, and who its
// children are the kernel tells so fast that such a chain is caught in the end. A job
// that makes new processes faster than they can be killed is beyond this: it takes a cgroup.
func (w *watch) killAll() {
	if w.group != nil {
		if err := w.group.Kill(); err != nil {
			w.log.Warn("kill the job's cgroup", "error", err)
		}
	}
	w.freeze()
	w.tell(syscall.SIGKILL)
	w.chase()
	w.pause = min(2*w.pause+time.Millisecond, time.Second)
	w.kill.Reset(w.pause)
}

// freeze stops every process of the job, those too that are made meanwhile.
func (w *watch) freeze() {
	for range freezeRounds {
		list, err := process.Descendants(w.self.PID)
		if err != nil {
			return // told by tell
		}
		moving := slices.DeleteFunc(list, func(st process.Stat) bool { return st.State == 'T' || st.State == 't' || st.State == 'Z' })
		if len(moving) == 0 {
			return
		}
		process.SignalAll(moving, syscall.SIGSTOP)
	}
}

// chase kills this process's children as they appear, for a while. None is waited for here,
// so that their numbers stay theirs.
func (w *watch) chase() {
	for end := time.Now().Add(chase); time.Now().Before(end); {
		pids, err := process.Children()
		if err != nil || len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) && !w.warned {
				w.warned = true
				w.log.Warn("kill a process of the job", "pid", pid, "error", err)
			}
		}
	}
}
