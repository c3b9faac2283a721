package ctld

import (
	"time"

	"schedrestd/bundled/ctld/journal"
	"schedrestd/model"
)

// forget removes the jobs that ended longer than Config.Retention ago. Their
// accounting records stay in the spool until they have been sent.
func (c *Controller) forget() {
	now := time.Now()
	c.mu.Lock()
	c.breakers.forget(now.Add(-c.seconds(maxRetryDelay)))
	c.mu.Unlock()
	limit := model.At(now.Add(-c.cfg.Retention))
	list, _ := c.snapshot()
	var expired []*record
	for _, r := range list {
		if r.Job.State.Ended() && r.Job.EndTime < limit {
			expired = append(expired, r)
		}
	}
	c.drop(expired)
}

// drop removes ended jobs from the journal and from memory.
func (c *Controller) drop(expired []*record) {
	if len(expired) == 0 {
		return
	}
	entries := []journal.Entry{c.nextEntry()}
	for _, r := range expired {
		entries = append(entries, journal.Entry{Key: r.key()})
	}
	if err := c.journal.Commit(entries...); err != nil {
		c.log.Error("forgetting ended jobs failed", "error", err)
		return
	}
	c.mu.Lock()
	for _, r := range expired {
		if j := c.jobs[r.id()]; j != nil && j.record == r { // otherwise another request has dropped it meanwhile
			delete(c.jobs, j.id())
			countJob(&c.forgotten, &r.Job, model.At(c.startedAt))
			c.setLoadLocked(j, load{})
		}
	}
	c.markChangedLocked(time.Now())
	c.mu.Unlock()
}
