package step

import (
	"errors"
	"slices"
	"syscall"
	"time"

	"schedrestd/bundled/ctld/process"
)

const (
	maxFreezePasses = 20                    // maximum number of passes over /proc in the method freeze
	chaseTime       = 20 * time.Millisecond // how long the method chase runs
)

// killAll kills the remaining processes of the job. It sets killTimer, so that
// it is called again after a pause.
//
// The kernel kills a cgroup atomically. Without a cgroup, a process could fork
// after killAll has listed the processes but before killAll kills them. So
// killAll stops all running processes, and repeats this until it finds none.
// Then it kills all processes.
//
// A job can evade this with a chain of processes, each of which forks and then
// exits at once. Such a process is gone before the list is complete. But its
// child then becomes a child of the step process. The step process can list its
// own children so fast that it eventually catches the chain. If a job creates
// processes faster than killAll kills them, only a cgroup can end the job.
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

// chase repeatedly kills new children of this process until chaseTime has
// passed. It does not reap the killed children, so the kernel does not reuse
// their process ids.
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
