package ctld

import (
	"time"

	"schedrestd/ctld/journal"
	"schedrestd/model"
)

// forget drops the jobs that ended long enough ago. The accounting daemon gets them from the spool
// all the same.
func (c *Controller) forget() {
	limit := model.At(time.Now().Add(-c.cfg.Keep))
	c.mu.Lock()
	var gone []*job
	for _, j := range c.jobs {
		if j.phase == ended && j.Job.EndTime < limit {
			gone = append(gone, j)
		}
	}
	c.mu.Unlock()
	c.drop(gone)
}

// drop takes jobs that ended out of the journal and of what is shown.
func (c *Controller) drop(gone []*job) {
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
		if c.jobs[j.id()] == j { // not dropped by another request meanwhile
			delete(c.jobs, j.id())
			c.usage.add(j.Job.UserID, -1, -j.bytes())
		}
	}
	c.change(time.Now())
	c.mu.Unlock()
}
