package ctld

import (
	"context"
	"errors"
	"strconv"
	"syscall"
	"time"

	"schedrestd/bundled/ctld/process"
	"schedrestd/bundled/ctld/step"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// handleKill cancels a job (signal 9) or sends it a signal. Signal 0 only
// checks whether the client may signal the job. Users may signal their own
// jobs. Root and the scheduler's user may signal all jobs.
//
// handleKill answers when the job's step has been notified. The job may then
// take up to KillWait to end. Clients poll the job to learn when it has ended.
//
// handleKill returns these errors:
//
//   - 2017: there is no such job, or the client may not see it.
//   - 2002: the job belongs to another user.
//   - 2021: the job has ended.
//   - 2024: the job is not running yet and can't be signalled. Slurm's error is
//     2020, for which scancel tries again for more than a minute.
func (c *Controller) handleKill(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.KillJob
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	id, err := requestedJobID(&q)
	if err != nil {
		return 0, nil, err
	}
	if err := c.kill(r, id, q.Signal, model.Kill(q.Flags), time.Now().Add(startTimeout)); err != nil {
		return 0, nil, err
	}
	return success()
}

// kill cancels or signals the job with this id on behalf of the client that
// sent r. See handleKill. Of the flags, only model.KillBatchJob has an effect, on a
// job that runs.
func (c *Controller) kill(r *server.Request, id uint32, signal uint16, flags model.Kill, deadline time.Time) error {
	if err := c.checkKill(r.Identity, id); err != nil {
		return err
	}
	c.log.Info("job signal requested", clientAttrs(r, "job", id, "signal", signal, "flags", uint32(flags))...)
	onlyScript := flags&model.KillBatchJob != 0
	if signal == uint16(syscall.SIGKILL) && !(onlyScript && c.isRunning(id)) {
		return c.cancel(id, r.Identity.UID, deadline)
	}
	return c.signal(id, syscall.Signal(signal), onlyScript)
}

// requestedJobID returns the number of the job that the request names. It
// refuses array tasks, such as "12_3", and components of heterogeneous jobs,
// such as "12+3", because this controller has neither.
func requestedJobID(q *message.KillJob) (uint32, error) {
	text := q.JobText
	if text == "" && q.JobID.Set {
		return q.JobID.Number, nil
	}
	return jobID(text)
}

// jobID returns the job number in text.
func jobID(text string) (uint32, error) {
	id, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, refuse(errs.NotFound, fault.InvalidJobID, "there is no job %.40q", text)
	}
	return uint32(id), nil
}

func (c *Controller) checkKill(client server.Identity, id uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	j, err := c.editableJobLocked(client, id)
	if err == nil && j.phase == ended {
		err = refuse(errs.Conflict, fault.AlreadyDone, "job %d has already ended", id)
	}
	return err
}

// editableJobLocked returns the job with this number if the client may change
// the job.
func (c *Controller) editableJobLocked(client server.Identity, id uint32) (*job, error) {
	j := c.jobs[id]
	switch {
	case j == nil, !c.canSee(client, j.record):
		// Clients that may not see the job get the same error as for a job that
		// does not exist. So they can't find out which jobs exist.
		return nil, refuse(errs.NotFound, fault.InvalidJobID, "there is no job %d", id)
	case client.UID != j.Job.UserID && !c.super(client.UID):
		return nil, refuse(errs.Denied, fault.AccessDenied, "job %d belongs to another user", id)
	}
	return j, nil
}

// cancel cancels a job on behalf of the user uid. If the job is being started, cancel waits until it has
// started, but not beyond the deadline. A job that starts after the deadline is
// cancelled as soon as it has started.
func (c *Controller) cancel(id, uid uint32, deadline time.Time) error {
	c.mu.Lock()
	j := c.jobs[id]
	if j == nil || j.phase == ended {
		c.mu.Unlock()
		return nil
	}
	if requeued := j.Requeue != requeueNone; !j.cancelled && (requeued || j.phase == running) {
		c.mu.Unlock()
		if err := c.recordCancel(j, uid, deadline); err != nil {
			if requeued {
				return err
			}
			// A job can be cancelled even if the disk is full.
			c.log.Error("recording cancellation failed", "job", id, "uid", uid, "error", err)
		}
		c.mu.Lock()
		if j.phase == ended {
			c.mu.Unlock()
			return nil
		}
	}
	now := time.Now()
	if !j.cancelled {
		j.cancelled = true
		c.updateLocked(j, now, func(m *model.Job) { m.Run.CancelledBy = model.Some(uid) })
	}
	switch {
	case j.phase == running:
		c.updateLocked(j, now, func(m *model.Job) { m.State, m.EndTime = m.State|model.JobCompleting, model.At(now) })
		s := j.step
		defer c.mu.Unlock() // s is closed under c.mu
		return ignoreGone(s.Cancel())
	case j.phase == waiting && c.queue.Remove(id):
		// The job is no longer in the queue, so this process won't start it.
		// But a step that an earlier controller started might still run it.
		j.phase = starting
	default:
		c.mu.Unlock() // the goroutine that starts the job checks j.cancelled
		return c.cancelStarting(j, uid, deadline)
	}
	reason := j.view(time.Now()).StateReason
	c.mu.Unlock()
	err := step.Withdraw(j.home)
	if errors.Is(err, step.ErrClaimed) {
		c.tasks.Go(func() { c.adoptStep(j) })
		return c.cancelStarting(j, uid, deadline)
	}
	if err != nil {
		return err
	}
	// While the disk is full, finish does not return.
	c.tasks.Go(func() {
		c.finish(j, func(m *model.Job) { m.State, m.StateReason = model.JobCancelled, reason })
	})
	return c.awaitCancelled(j, deadline)
}

// recordCancel writes to the journal that the user uid cancels the running job j,
// and that j will not be requeued. Otherwise the next controller would not know
// this if the current one crashed before the end of the job was recorded. If j is
// back in the queue, recordCancel changes nothing: the end will be recorded at once.
func (c *Controller) recordCancel(j *job, uid uint32, deadline time.Time) error {
	if err := c.lockEdit(j, deadline); err != nil {
		return err
	}
	defer j.editMu.Unlock()
	err := c.amend(j, c.uid, func() (func(*record), error) {
		if j.phase == waiting {
			return nil, refuse(errs.Conflict, fault.JobPending, "job %d is waiting", j.number)
		}
		return func(r *record) { r.Requeue, r.Job.Run.CancelledBy = requeueNone, model.Some(uid) }, nil
	})
	if errs.KindOf(err) == errs.Conflict { // the job has ended, or is waiting
		return nil
	}
	if err == nil {
		c.mu.Lock()
		j.cancelled = true // before j.editMu is released, after which the job could be requeued
		c.mu.Unlock()
	}
	return err
}

// awaitCancelled waits until the end of job j is in the journal. Before that,
// only this process knows of the cancellation. It waits for at least a second,
// because a request may name many jobs, and has only one deadline.
func (c *Controller) awaitCancelled(j *job, deadline time.Time) error {
	if limit := time.Now().Add(time.Second); deadline.Before(limit) {
		deadline = limit
	}
	for time.Now().Before(deadline) {
		c.mu.Lock()
		phase := j.phase
		c.mu.Unlock()
		if phase == ended {
			return nil
		}
		if err := sleep(c.ctx, 2*time.Millisecond); err != nil {
			return errs.Wrap(err, errs.Unavailable, "cancellation of job %d interrupted", j.id())
		}
	}
	return errs.New(errs.Timeout, "the cancellation of job %d could not be recorded; the controller tries again, but forgets it if it is restarted", j.id())
}

// startTimeout limits how long a request waits for a job that is being started.
// Starting a job usually takes milliseconds. The limit is half of the default
// MessageTimeout. So the client receives this daemon's error and does not
// conclude that the daemon is dead.
const startTimeout = 5 * time.Second

// cancelStarting waits until job j has ended or the job's step has been
// notified. The job was cancelled while it was being started. Until the step is
// notified, only this process knows of the cancellation. If the controller
// answered the client earlier and then crashed, the cancellation would be lost.
func (c *Controller) cancelStarting(j *job, uid uint32, deadline time.Time) error {
	for time.Now().Before(deadline) {
		c.mu.Lock()
		phase, s := j.phase, j.step
		if phase == running {
			defer c.mu.Unlock() // s is closed under c.mu
			return ignoreGone(s.Cancel())
		}
		c.mu.Unlock()
		if phase == ended {
			return nil
		}
		if err := sleep(c.ctx, 2*time.Millisecond); err != nil {
			return errs.Wrap(err, errs.Unavailable, "cancellation of job %d interrupted", j.id())
		}
		if phase == waiting { // the job was being submitted
			return c.cancel(j.id(), uid, deadline)
		}
	}
	return errs.New(errs.Timeout, "job %d was still starting after %s; it will be cancelled once it has started",
		j.id(), startTimeout)
}

func (c *Controller) isRunning(id uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.jobs[id]
	return j != nil && j.phase == running
}

// signal sends a signal to all processes of a running job, or only to the process
// that runs its script. Signal 0 is sent to none.
func (c *Controller) signal(id uint32, sig syscall.Signal, onlyScript bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.jobs[id]
	if j == nil || j.phase != running {
		return refuse(errs.Conflict, 2024, "job %d is not running", id)
	}
	switch {
	case sig == 0:
		return nil
	case sig > 30:
		return refuse(errs.Invalid, int(syscall.EINVAL), "signal %d can't be sent to a job", sig)
	case onlyScript:
		return ignoreGone(j.step.SignalScript(sig))
	}
	return ignoreGone(j.step.Signal(sig))
}

// ignoreGone returns nil if err means that the job has just ended by itself.
// Otherwise it returns err.
func ignoreGone(err error) error {
	if errors.Is(err, process.ErrGone) {
		return nil
	}
	return err
}
