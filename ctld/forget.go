package ctld

import (
	"cmp"
	"slices"
	"time"

	"schedrestd/ctld/journal"
	"schedrestd/model"
)

// forget drops the jobs that ended long enough ago, and the oldest of those that
// ended when there are too many: memory is bounded. The accounting daemon gets them from the
// spool all the same.
func (c *Controller) forget() {
	limit := model.At(time.Now().Add(-c.cfg.Keep))
	c.mu.Lock()
	var done []*job
	for _, j := range c.jobs {
		if j.phase == ended {
			done = append(done, j)
		}
	}
	slices.SortFunc(done, func(a, b *job) int { return cmp.Compare(a.Job.EndTime, b.Job.EndTime) })
	surplus := len(c.jobs) - c.cfg.MaxJobs + max(1, c.cfg.MaxJobs/10) // room for some before the next time
	var gone []*job
	for i, j := range done {
		if j.Job.EndTime < limit || i < surplus {
			gone = append(gone, j)
		}
	}
	c.mu.Unlock()
	if len(gone) == 0 {
		return
	}
	entries := []journal.Entry{c.nextEntry()}
	for _, j := range gone {
		entries = append(entries, journal.Entry{Key: j.key()})
	}
	if err := c.journal.Commit(entries...); err != nil {
		c.log.Error("forget jobs", "error", err)
		return
	}
	c.mu.Lock()
	for _, j := range gone {
		delete(c.jobs, j.id())
	}
	c.change(time.Now())
	c.mu.Unlock()
}
