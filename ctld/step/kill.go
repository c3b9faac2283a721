package step

import (
	"errors"
	"slices"
	"syscall"
	"time"

	"schedrestd/ctld/process"
)

const (
	maxFreezePasses = 20                    // passes over /proc until all processes have stopped
	chaseTime       = 20 * time.Millisecond // how long the method chase runs
)

// killAll kills the remaining processes of the job and arms a timer to try
// again.
//
// A cgroup is killed atomically. Without a cgroup, a process may fork between
// being listed and being killed. So killAll first stops all processes, until it
// finds no running process, and then kills them. Processes that fork and exit
// at once can escape as a chain, because each is gone before the list is
// complete. But their orphans become children of this process. The kernel lists
// the children of this process fast enough to catch the chain eventually. A job
// that creates processes faster than they can be killed can only be ended in a
// cgroup.
func (w *watch) killAll() {
	if w.group != nil {
		if err := w.group.Kill(); err != nil {
			w.log.Warn("killing cgroup failed", "error", err)
		}
	}
	w.freeze()
	w.signalTree(syscall.SIGKILL)
	w.chase()
	w.killPause = min(2*w.killPause+time.Millisecond, time.Second)
	w.killTimer.Reset(w.killPause)
}

// freeze stops all processes of the job, including those that are created
// during the call.
func (w *watch) freeze() {
	for range maxFreezePasses {
		list, err := process.Descendants(w.self.PID)
		if err != nil {
			return // signalTree logs the error
		}
		running := slices.DeleteFunc(list, func(st process.Stat) bool {
			return st.State == 'T' || st.State == 't' || st.State == 'Z'
		})
		if len(running) == 0 {
			return
		}
		process.SignalAll(running, syscall.SIGSTOP)
	}
}

// chase kills new children of this process for a short time. It does not reap
// them, so that their process ids are not reused.
func (w *watch) chase() {
	for deadline := time.Now().Add(chaseTime); time.Now().Before(deadline); {
		pids, err := process.Children()
		if err != nil || len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) && !w.warned {
				w.warned = true
				w.log.Warn("killing process failed", "pid", pid, "error", err)
			}
		}
	}
}
