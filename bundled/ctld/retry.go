package ctld

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"schedrestd/bundled/ctld/step"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// A failure to start a job is usually a fault of the machine: the disk is full,
// or no process can be created. Such a fault never ends a job. The job waits
// and is tried again. Only the causes in neverStartsLocked end a job.

// Limits in seconds (see Controller.seconds).
const (
	maxPause      = 60     // longest pause between two attempts to start any job
	maxRetryDelay = 600    // longest delay between two attempts to start the same job
	missingLimit  = 86_400 // how long a job waits for a user who can't be found
)

// seconds returns the duration of n seconds, or less in tests.
func (c *Controller) seconds(n int) time.Duration { return time.Duration(n) * c.cfg.minute / 60 }

// These errors say why a job can't be started.
var (
	// errOtherUser means that the job's uid has been given to a different user
	// since the job was submitted. The job must not get access to the new
	// user's files.
	errOtherUser = errors.New("not the user that submitted the job")

	// errNoSpec means that the journal contains no usable script.
	errNoSpec = errors.New("job script missing from the journal")

	// errLookup means that the job's user or the user's groups could not be
	// looked up. The cause may be that the directory service is down. Some
	// directory clients then report that the user does not exist.
	errLookup = errors.New("look up the job's user")
)

// neverStartsLocked returns the reason why job j can never start, or "" if a
// later attempt may succeed. The argument err is the error of an attempt.
func (c *Controller) neverStartsLocked(j *job, err error, now time.Time) string {
	missing := errors.Is(err, errLookup) && errs.KindOf(err) == errs.NotFound
	switch {
	case !missing:
		j.missingSince = time.Time{}
	case j.missingSince.IsZero():
		j.missingSince = now
	}
	switch {
	case errors.Is(err, errOtherUser):
		return fmt.Sprintf("uid %d no longer belongs to user %s", j.Job.UserID, j.Job.UserName)
	case errors.Is(err, errNoSpec):
		return "the controller's copy of the job's script is damaged"
	case missing && now.Sub(j.missingSince) >= c.seconds(missingLimit):
		return "the job's user no longer exists"
	}
	return ""
}

// notePause opens or closes a breaker after an attempt to start job j. The
// attempt began at the time began and ended with err.
func (c *Controller) notePause(j *job, began time.Time, err error) {
	now, id := time.Now(), j.id()
	fail := func(key uint32) bool {
		return c.breakers.failed(key, id, began, now, c.seconds(1), c.seconds(maxPause))
	}
	c.mu.Lock()
	uid, opened, paused := j.Job.UserID, false, time.Duration(0)
	switch {
	case err == nil, errors.Is(err, step.ErrClaimed):
		paused = c.breakers.succeeded(uid, id, began, now)
	case errors.Is(err, errLookup):
		opened = fail(uid)
	case errors.Is(err, errOtherUser), errors.Is(err, errNoSpec):
		c.breakers.endTest(id)
	default:
		opened = fail(noUser)
	}
	c.mu.Unlock()
	switch {
	case opened && errors.Is(err, errLookup):
		c.log.Error("job starts paused for one user", "uid", uid, "job", id, "error", err)
	case opened:
		c.log.Error("job starts paused", "job", id, "error", err)
	case paused > 0:
		c.log.Warn("job starts resumed", "job", id, "paused", paused.Round(time.Millisecond))
		c.wakeScheduler()
	}
}

// handleStartFailure handles the failure of an attempt to start job j. It puts
// the job back into the queue, unless the job was cancelled or can never start.
func (c *Controller) handleStartFailure(j *job, err error) {
	if c.ctx.Err() != nil {
		return // the next controller handles the job
	}
	if e := step.Withdraw(j.home); errors.Is(e, step.ErrClaimed) {
		c.adoptStep(j)
		return
	}
	now := time.Now()
	c.mu.Lock()
	reason, cancelled := c.neverStartsLocked(j, err, now), j.cancelled
	if reason == "" && !cancelled {
		c.delayRetryLocked(j, now)
		c.queue.Release(j.id())
		c.queue.Add(j.id(), j.Need, j.earliestLocked(), j.Job.Priority)
		j.phase = waiting
		c.updateLocked(j, now, func(m *model.Job) {
			m.State, m.StartTime = model.JobPending, 0
			m.StateReason, m.StateDescription = launchReason(m), startFailureText(err)
		})
		c.mu.Unlock()
		c.wakeScheduler()
		return
	}
	c.mu.Unlock()
	c.log.Error("starting job failed", "job", j.id(), "error", err)
	c.finish(j, func(m *model.Job) {
		if cancelled {
			m.State, m.StateReason = model.JobCancelled, reasonNone
			return
		}
		m.State, m.StateReason, m.ExitCode = model.JobFailed|model.JobLaunchFailed, reasonLaunch, 1<<8
		m.StateDescription = reason
	})
}

// launchReason returns the state reason of a job that waits because an attempt to
// start it failed. A job that an administrator has held during the attempt keeps
// that reason, because otherwise its owner could release it.
func launchReason(m *model.Job) uint32 {
	if m.StateReason == reasonHeldAdmin {
		return reasonHeldAdmin
	}
	return reasonLaunch
}

// startFailureText returns the state description of a job that waits because an
// attempt to start it failed with err. It contains no paths of the controller.
func startFailureText(err error) string {
	if errors.Is(err, errLookup) {
		return "not started yet: the job's user could not be looked up"
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return "not started yet: " + errno.Error()
	}
	return "not started yet: the controller could not start a process for the job"
}

// delayRetryLocked sets the time of the next attempt to start job j after a
// failed one. Without the delay, a job that always fails would be the only one
// that is tried while starts are paused.
func (c *Controller) delayRetryLocked(j *job, now time.Time) {
	delay := min(c.seconds(1)<<min(j.failures, 10), c.seconds(maxRetryDelay))
	j.failures++
	j.retryAt = now.Add(delay)
}

// runAgain puts job j back into the queue. The job's step has claimed the job,
// but the script has not run, for a reason that has nothing to do with the job.
// The claim can't be withdrawn, so the job returns to the queue like a job that
// is requeued.
func (c *Controller) runAgain(j *job, reason string) {
	now := time.Now()
	c.mu.Lock()
	first := j.failures == 0
	c.delayRetryLocked(j, now)
	r := *j.record
	r.Job.StateReason, r.Job.StateDescription = launchReason(&r.Job), "not started yet: "+reason
	if r.Requeue == requeueNone && !j.cancelled {
		r.Requeue = requeueFree
	}
	j.record = &r
	c.markChangedLocked(now)
	c.mu.Unlock()
	if first {
		c.log.Error("job not started; it will be tried again", "job", j.id(), "reason", reason)
	}
	c.finish(j, func(m *model.Job) { // the job was cancelled
		m.State, m.StateReason, m.StateDescription, m.StartTime = model.JobCancelled, reasonNone, "", 0
	})
}
