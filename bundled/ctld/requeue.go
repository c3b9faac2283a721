package ctld

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"schedrestd/bundled/ctld/failpoint"
	"schedrestd/bundled/ctld/step"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// handleRequeue ends the current run of a job and queues the job again. A job
// may be requeued by its owner, by root and by the scheduler's user. Like
// handleKill, handleRequeue sends the answer when the job's step has been
// notified. The job is back in the queue when all of its processes have exited.
//
// handleRequeue returns these errors, among others:
//
//   - 2017: there is no such job, or the client may not see it.
//   - 2002: the job belongs to another user.
//   - 2024: the job is waiting.
//   - 2037: the job was submitted with the option that forbids requeueing.
//     This error comes before those for jobs that wait or have ended.
//   - 2036: the job has ended, and its script is no longer stored.
func (c *Controller) handleRequeue(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.RequeueRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	jobText := cmp.Or(q.JobText, fmt.Sprint(q.JobID.Number))
	if err := c.requeueJob(r.Identity, jobText, q.Flags); err != nil {
		return jobError(jobText, err)
	}
	c.log.Info("job requeue requested", clientAttrs(r, "job", jobText)...)
	return success()
}

func (c *Controller) requeueJob(client server.Identity, jobText string, flags model.Requeue) error {
	id, err := jobID(jobText)
	if err != nil {
		return err
	}
	if flags&model.RequeueSpecialExit != 0 {
		return refuse(errs.Unsupported, fault.NotSupported, "this controller does not support marking requeued jobs")
	}
	j, err := c.awaitRunning(client, id, time.Now().Add(startTimeout))
	if err != nil {
		return err
	}
	if err := c.lockEdit(j, time.Now().Add(startTimeout)); err != nil {
		return err
	}
	defer j.editMu.Unlock()
	mode := requeueFree
	switch hold := flags&model.RequeueHold != 0; {
	case hold && client.UID == j.Job.UserID:
		mode = requeueHeldUser
	case hold:
		mode = requeueHeldAdmin
	}
	err = c.amend(j, client.UID, func() (func(*record), error) {
		switch {
		case j.cancelled:
			return nil, refuse(errs.Conflict, fault.AlreadyDone, "job %d was cancelled", id)
		case j.phase != running: // the job ended and was requeued meanwhile
			return nil, refuse(errs.Conflict, fault.JobPending, "job %d is waiting", id)
		}
		return func(r *record) { r.Requeue = mode }, nil
	})
	if err != nil {
		return err
	}
	failpoint.Here("requeueing")
	c.mu.Lock()
	defer c.mu.Unlock()
	if j.step == nil {
		return nil
	}
	c.updateLocked(j, time.Now(), func(m *model.Job) { m.State |= model.JobCompleting })
	return ignoreGone(j.step.Cancel())
}

// awaitRunning returns the job with this id if the job is running and the
// client may change it. If the job is being started, awaitRunning waits until
// it is running, but not beyond the deadline.
func (c *Controller) awaitRunning(client server.Identity, id uint32, deadline time.Time) (*job, error) {
	for {
		c.mu.Lock()
		j, err := c.editableJobLocked(client, id)
		phase := ended
		if err == nil {
			phase = j.phase
			if j.Job.Requeue == 0 {
				err = refuse(errs.Conflict, fault.Disabled, "job %d was submitted with the option that forbids requeueing", id)
			}
		}
		c.mu.Unlock()
		switch {
		case err != nil:
			return nil, err
		case phase == running:
			return j, nil
		case phase == waiting:
			return nil, refuse(errs.Conflict, fault.JobPending, "job %d is waiting", id)
		case phase == ended:
			return nil, refuse(errs.Unsupported, fault.NotSupported,
				"job %d has ended, and this controller does not keep the scripts of such jobs", id)
		case time.Now().After(deadline):
			return nil, refuse(errs.Conflict, fault.JobChanging, "job %d is being started; try again", id)
		}
		if err := sleep(c.ctx, 2*time.Millisecond); err != nil {
			return nil, errs.Wrap(err, errs.Unavailable, "requeue of job %d interrupted", id)
		}
	}
}

// queueNextRun puts j back into the queue after a run has ended. Each run
// has a directory of its own. So a single commit of the job's record is enough
// to switch to the next run. The caller holds j.editMu.
//
// The argument last describes the run that has ended. As in Slurm, a run has a record
// of its own in accounting, and the next one counts as submitted now. If hasRun is
// false, the script has not run, and there is nothing to record.
func (c *Controller) queueNextRun(j *job, last *model.Job, hasRun bool) {
	now := time.Now()
	c.mu.Lock()
	r := *j.record
	c.mu.Unlock()
	m := &r.Job
	toPending(m)
	m.RestartCnt++
	m.EligibleTime = model.At(now)
	switch r.Requeue {
	case requeueHeldUser:
		m.Priority, m.StateReason = 0, reasonHeldUser
	case requeueHeldAdmin:
		m.Priority, m.StateReason = 0, reasonHeldAdmin
	}
	r.Requeue, r.LimitChanged = requeueNone, false
	var previous *record
	if hasRun {
		m.SubmitTime = model.At(now)
		last.State = model.JobPending | model.JobRequeued
		previous = &record{Job: *last}
	}
	if !c.persist(&r, previous) {
		return // the controller is stopping; the next one reads the files
	}
	failpoint.Here("requeued")
	if err := step.RemoveHome(j.home); err != nil {
		c.log.Warn("removing step files failed", "job", j.id(), "error", err)
	}
	recordBytes := c.recordSize(j)
	c.mu.Lock()
	j.record, j.phase = &r, waiting
	j.home = c.home(j.number, m.RestartCnt)
	c.setLoadLocked(j, c.jobLoad(j, recordBytes))
	if j.step != nil {
		j.step.Close()
		j.step = nil
	}
	c.queue.Release(j.id())
	c.queue.Add(j.id(), j.Need, j.earliestLocked(), j.Job.Priority)
	c.markChangedLocked(now)
	c.mu.Unlock()
	c.log.Info("job requeued", "job", j.id(), "restarts", m.RestartCnt)
	c.wakeScheduler()
}

// toPending marks m as waiting. It clears the fields that were set for the
// previous run.
func toPending(m *model.Job) {
	m.State, m.Run = model.JobPending, model.JobRun{}
	m.StartTime, m.EndTime = 0, 0
	m.Nodes, m.BatchHost, m.TRESAlloc, m.NodeIndexes = "", "", "", model.Bitmap{}
}
