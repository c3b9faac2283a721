package step

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"schedrestd/bundled/ctld/process"
)

// samplingInterval is the time between two measurements of the job's memory if
// the kernel does not enforce the limit. A job may exceed its limit until the
// next measurement.
const samplingInterval = 500 * time.Millisecond

// makeGroup creates a cgroup for the job if the controller found that this is
// permitted. If the kernel can't enforce the job's memory limit, makeGroup
// starts a ticker, and the step measures the job's memory at each tick.
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
	if limit > 0 && (w.group == nil || !w.group.MemoryLimited) {
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

// checkMemory ends the job if its processes use more memory than the limit
// permits. It first adds up their resident sets, in which shared pages count
// more than once. If this sum exceeds the limit, checkMemory adds up the
// proportional set sizes (PSS) instead. These are exact but slow to compute.
func (w *watch) checkMemory() {
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
		w.stopJob(OutOfMemory, 0)
	}
}

const oomScore = "/proc/self/oom_score_adj"

// dropOOMProtection makes the out-of-memory killer treat this process like any
// other. The controller may be protected from the out-of-memory killer, and the
// job must not inherit that protection.
func (w *watch) dropOOMProtection() {
	b, err := os.ReadFile(oomScore)
	if err == nil && bytes.HasPrefix(b, []byte("-")) {
		err = os.WriteFile(oomScore, []byte("0"), 0)
	}
	if err != nil {
		w.log.Warn("resetting oom_score_adj failed", "error", err)
	}
}

// enableOOMProtection protects this process from the kernel's out-of-memory
// killer, so that the kernel kills processes of the job instead. It must be
// called after the script's process was created. Otherwise that process would
// inherit the protection.
func (w *watch) enableOOMProtection() {
	if err := os.WriteFile(oomScore, []byte("-1000"), 0); err != nil && os.Getuid() == 0 {
		w.log.Warn("setting oom_score_adj failed", "error", err)
	}
}
