package ctld

import (
	"testing"
	"time"

	"schedrestd/model"
)

// TestEstimate checks when the controller expects jobs to start, and that it submits
// none of them.
func TestEstimate(t *testing.T) {
	c, _ := controller(t, Config{})
	now := time.Now()
	c.mu.Lock()
	cpus := c.queue.Total().CPUs
	c.mu.Unlock()
	estimate := func(change func(*model.JobDesc)) model.Time {
		t.Helper()
		d := desc(t.TempDir(), "exit 0")
		change(d)
		j, _, _, err := c.prepareJob(ownUser, d, now)
		if err != nil {
			t.Fatal(err)
		}
		_, start := c.estimate(j, now)
		return start
	}
	if got := estimate(func(*model.JobDesc) {}); got != model.At(now) {
		t.Errorf("an idle machine: %d, want %d", got, model.At(now))
	}
	if got := estimate(func(d *model.JobDesc) { d.BeginTime = model.At(now) + 100 }); got != model.At(now)+100 {
		t.Errorf("a begin time: %d", got)
	}
	if got := estimate(func(d *model.JobDesc) { d.Priority = model.Some[uint32](0) }); got != noEstimate {
		t.Errorf("a held job: %d", got)
	}
	d := desc(t.TempDir(), "sleep 100")
	d.NumTasks = model.Some(uint32(cpus))
	d.TimeLimit = model.Infinite[uint32]()
	id := submit(t, c, d)
	if got := estimate(func(*model.JobDesc) {}); got != noEstimate {
		t.Errorf("behind a job without an end: %d", got)
	}
	c.mu.Lock()
	n := len(c.jobs)
	c.mu.Unlock()
	if n != 1 {
		t.Errorf("%d jobs", n)
	}
	if err := cancel(c, id); err != nil {
		t.Fatal(err)
	}
	awaitState(t, c, id, model.JobCancelled)
}
