package step

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"schedrestd/ctld/process"
)

// samplingInterval is how often the memory of the tree is looked at when the kernel
// does not keep the limit: a job may be over it for that long.
const samplingInterval = 500 * time.Millisecond

// makeGroup gives the job a cgroup of its own where the controller has found that
// permitted. Without one memory is sampled.
func (w *watch) makeGroup() {
	limit := w.spec.Memory
	if w.spec.Cgroup.Path != "" {
		g, err := w.spec.Cgroup.New(fmt.Sprintf("sched_job_%d.%d", w.spec.Job, w.self.PID), limit)
		if err == nil {
			w.group = g
		} else {
			w.log.Warn("no cgroup for the job; its memory is sampled", "error", err)
		}
	}
	if limit > 0 && (w.group == nil || !w.group.Limits) {
		w.sampler = time.NewTicker(samplingInterval)
	}
}

func (w *watch) removeGroup() {
	if w.group == nil {
		return
	}
	if err := w.group.Remove(); err != nil {
		w.log.Warn("the job's cgroup stays", "error", err)
	}
}

// measure ends the job when its processes take more memory than it may. Pages that they
// share must not count twice, so a sum that is over is confirmed by their shares.
func (w *watch) measure() {
	list, err := process.Descendants(w.self.PID)
	if err != nil {
		w.log.Warn("measure the job's memory", "error", err)
		return
	}
	sum := process.Resident(list, false)
	if sum > w.spec.Memory {
		sum = process.Resident(list, true)
	}
	w.outcome.MaxRSS = max(w.outcome.MaxRSS, sum)
	if sum > w.spec.Memory {
		w.end(OutOfMemory, 0)
	}
}

const oomScore = "/proc/self/oom_score_adj"

// expose takes back a protection that the controller has and the job must not inherit.
func (w *watch) expose() {
	b, err := os.ReadFile(oomScore)
	if err == nil && bytes.HasPrefix(b, []byte("-")) {
		err = os.WriteFile(oomScore, []byte("0"), 0)
	}
	if err != nil {
		w.log.Warn("adjust the job for the out-of-memory killer", "error", err)
	}
}

// protect keeps the kernel's out-of-memory killer off this process, once the script's,
// which would inherit that, is started: the job is to be killed, not its keeper.
func (w *watch) protect() {
	if err := os.WriteFile(oomScore, []byte("-1000"), 0); err != nil && os.Getuid() == 0 {
		w.log.Warn("not protected from the out-of-memory killer", "error", err)
	}
}
