package ctld

import (
	"time"

	"schedrestd/ctld/journal"
	"schedrestd/model"
)

// forget drops the jobs that ended longer than Config.Keep ago. Their
// accounting records stay in the spool until the accounting daemon has them.
func (c *Controller) forget() {
	now := time.Now()
	c.mu.Lock()
	c.forgetRates(now)
	c.mu.Unlock()
	limit := model.At(now.Add(-c.cfg.Keep))
	list, _ := c.snapshot()
	var gone []*record
	for _, r := range list {
		if r.Job.State.Ended() && r.Job.EndTime < limit {
			gone = append(gone, r)
		}
	}
	c.drop(gone)
}

// drop removes ended jobs from the journal and from memory.
func (c *Controller) drop(gone []*record) {
	if len(gone) == 0 {
		return
	}
	entries := []journal.Entry{c.nextEntry()}
	for _, r := range gone {
		entries = append(entries, journal.Entry{Key: r.key()})
	}
	if err := c.journal.Commit(entries...); err != nil {
		c.log.Error("forgetting ended jobs failed", "error", err)
		return
	}
	c.mu.Lock()
	for _, r := range gone {
		if j := c.jobs[r.id()]; j != nil && j.record == r { // otherwise another request has dropped it meanwhile
			delete(c.jobs, j.id())
			c.count(j, load{})
		}
	}
	c.change(time.Now())
	c.mu.Unlock()
}
