package step

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"schedrestd/ctld/process"
)

// samplingInterval is how often the memory of the process tree is measured when
// the kernel does not enforce the limit. A job may exceed its limit for that
// long.
const samplingInterval = 500 * time.Millisecond

// makeGroup creates a cgroup for the job if the controller has found that this is
// permitted. Without a cgroup, it samples the memory.
func (w *watch) makeGroup() {
	limit := w.spec.Memory
	if w.spec.Cgroup.Path != "" {
		g, err := w.spec.Cgroup.New(fmt.Sprintf("sched_job_%d.%d", w.spec.Job, w.self.PID), limit)
		if err == nil {
			w.group = g
		} else {
			w.log.Warn("creating cgroup failed; sampling memory", "error", err)
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
		w.log.Warn("removing cgroup failed", "error", err)
	}
}

// measure ends the job when its processes use more memory than the limit. A sum
// over the limit may count shared pages twice, so the memory is then measured
// again as proportional set size (PSS).
func (w *watch) measure() {
	list, err := process.Descendants(w.self.PID)
	if err != nil {
		w.log.Warn("measuring memory failed", "error", err)
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

// expose resets a protection from the out-of-memory killer that the controller
// may have and the job must not inherit.
func (w *watch) expose() {
	b, err := os.ReadFile(oomScore)
	if err == nil && bytes.HasPrefix(b, []byte("-")) {
		err = os.WriteFile(oomScore, []byte("0"), 0)
	}
	if err != nil {
		w.log.Warn("resetting oom_score_adj failed", "error", err)
	}
}

// protect protects this process from the kernel's out-of-memory killer, so that
// it kills the job instead of the process that supervises it. It runs after the
// script was started, which would inherit the protection.
func (w *watch) protect() {
	if err := os.WriteFile(oomScore, []byte("-1000"), 0); err != nil && os.Getuid() == 0 {
		w.log.Warn("setting oom_score_adj failed", "error", err)
	}
}
