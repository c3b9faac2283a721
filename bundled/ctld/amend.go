package ctld

import (
	"time"

	"schedrestd/internal/errs"
	"schedrestd/rpc/fault"
)

// lockEdit locks j.editMu. It fails if another goroutine still holds that lock
// at the deadline. For example, that goroutine may be waiting until the end of
// the job is in the journal.
func (c *Controller) lockEdit(j *job, deadline time.Time) error {
	for !j.editMu.TryLock() {
		if time.Now().After(deadline) {
			return refuse(errs.Conflict, fault.JobChanging, "job %d is changing its state; try again", j.number)
		}
		if err := sleep(c.ctx, 2*time.Millisecond); err != nil {
			return errs.Wrap(err, errs.Unavailable, "change of job %d interrupted", j.number)
		}
	}
	return nil
}

// amend changes the record of a job that has not ended, first on disk and
// then in memory. The caller holds j.editMu.
//
// The function decide checks whether the job can be changed. It returns an
// error or a function that makes the change. amend calls the returned function
// twice, before and after the write, and both calls must have the same effect.
// A waiting job does not start before amend returns, so the checks stay
// valid until then. The written bytes count against the rate limit of the user
// uid.
func (c *Controller) amend(j *job, uid uint32, decide func() (func(*record), error)) error {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs[j.number] != j {
		return refuse(errs.NotFound, fault.InvalidJobID, "there is no job %d", j.number)
	}
	if j.phase == ended {
		return refuse(errs.Conflict, fault.JobFinished, "job %d has already ended", j.number)
	}
	change, err := decide()
	if err != nil {
		return err
	}
	wasQueued := j.phase == waiting && c.queue.Remove(j.number)
	if wasQueued {
		defer func() {
			c.queue.Add(j.number, j.Need, j.earliestLocked(), j.Job.Priority)
			c.wakeScheduler()
		}()
	}
	r := *j.record
	change(&r)
	c.mu.Unlock()
	e, err := r.entry()
	c.mu.Lock()
	if err != nil {
		return err
	}
	if err := c.checkRate(uid, now); err != nil {
		return err
	}
	oldLoad, l := j.load, c.jobLoad(j, e.Size())
	if l.recordBytes > oldLoad.recordBytes {
		if err := c.reserveLoadLocked(j, l); err != nil {
			return err
		}
	}
	c.charge(uid, e.Size(), now)
	c.mu.Unlock()
	err = c.journal.Commit(e)
	c.mu.Lock()
	if err != nil {
		c.setLoadLocked(j, oldLoad)
		return commitError(err, "the change of job %d could not be recorded", j.number)
	}
	c.setLoadLocked(j, l)
	r = *j.record // the job may have started during the write
	change(&r)
	j.record = &r
	c.markChangedLocked(now)
	return nil
}
