package ctld

import (
	"context"
	"errors"
	"strconv"
	"syscall"
	"time"

	"schedrestd/ctld/process"
	"schedrestd/ctld/step"
	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// handleKill ends a job (signal 9) or sends it a signal; signal 0 only checks. A user
// may do so to his own jobs, root and the scheduler's user to all. It answers when the step has been
// told; the job's end, which takes up to KillWait, is seen by looking at the job.
//
// 2017: no such job, or one that the client may not see. 2002: another user's. 2021: it has ended. 2024: it waits and can't be signalled.
func (c *Controller) handleKill(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.KillJob
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	id, err := killed(&q)
	if err != nil {
		return 0, nil, err
	}
	if err := c.mayKill(r.Identity, id); err != nil {
		return 0, nil, err
	}
	c.log.Info("job signal requested", asker(r, "job", id, "signal", q.Signal)...)
	switch q.Signal {
	case 0:
	case uint16(syscall.SIGKILL):
		err = c.cancel(id)
	default:
		err = c.signal(id, syscall.Signal(q.Signal))
	}
	if err != nil {
		return 0, nil, err
	}
	return done()
}

// killed is the job that a request is about. Arrays and heterogeneous jobs, "12_3" and
// "12+3", do not exist here.
func killed(q *message.KillJob) (uint32, error) {
	text := q.JobText
	if text == "" && q.JobID.Set {
		return q.JobID.Number, nil
	}
	id, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, refuse(errs.NotFound, fault.InvalidJobID, "there is no job %.40q", text)
	}
	return uint32(id), nil
}

func (c *Controller) mayKill(who server.Identity, id uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.jobs[id]
	switch {
	case j == nil, !c.sees(who, j.record): // one answer: whether another's exists is not told
		return refuse(errs.NotFound, fault.InvalidJobID, "there is no job %d", id)
	case who.UID != j.Job.UserID && !c.super(who.UID):
		return refuse(errs.Denied, fault.AccessDenied, "job %d belongs to another user", id)
	case j.phase == ended:
		return refuse(errs.Conflict, fault.AlreadyDone, "job %d has already ended", id)
	}
	return nil
}

// cancel ends a job, or has it end as soon as it has started.
func (c *Controller) cancel(id uint32) error { return c.cancelBy(id, time.Now().Add(startPatience)) }

// cancelBy is cancel of a job that is not to be waited for longer.
func (c *Controller) cancelBy(id uint32, until time.Time) error {
	c.mu.Lock()
	j := c.jobs[id]
	if j == nil || j.phase == ended {
		c.mu.Unlock()
		return nil
	}
	j.cancelled = true
	switch {
	case j.phase == running:
		c.update(j, time.Now(), func(m *model.Job) { m.State |= model.JobCompleting })
		s := j.step
		defer c.mu.Unlock() // s is closed under it
		return gone(s.Cancel())
	case j.phase == waiting && c.queue.Remove(id):
		// Nobody else will start it now; but a step of an earlier controller might.
		j.phase = starting
	default:
		c.mu.Unlock() // whoever starts it will see that it is cancelled
		return c.cancelStarted(j, until)
	}
	c.mu.Unlock()
	err := step.Withdraw(c.home(id))
	if errors.Is(err, step.ErrTaken) {
		c.tasks.Go(func() { c.takeUp(j) })
		return c.cancelStarted(j, until)
	}
	if err != nil {
		return err
	}
	c.finish(j, func(m *model.Job) { m.State, m.StateReason = model.JobCancelled, reasonNone })
	return nil
}

// startPatience is how long a cancellation waits for a job that is being started, which takes milliseconds.
const startPatience = 10 * time.Second

// cancelStarted waits until j, which is being started and is known to be cancelled, has a step that is told, or has ended. Until then only this
// process knows of it: were it answered before, a controller that dies now would have promised what the next one does not know.
func (c *Controller) cancelStarted(j *job, until time.Time) error {
	for time.Now().Before(until) {
		c.mu.Lock()
		phase, s := j.phase, j.step
		if phase == running {
			defer c.mu.Unlock() // s is closed under it
			return gone(s.Cancel())
		}
		c.mu.Unlock()
		if phase == ended {
			return nil
		}
		if err := sleep(c.ctx, 2*time.Millisecond); err != nil {
			return errs.Wrap(err, errs.Unavailable, "cancellation of job %d interrupted", j.id())
		}
		if phase == waiting { // it was being submitted
			return c.cancelBy(j.id(), until)
		}
	}
	return errs.New(errs.Timeout, "job %d was still starting after %s; it will be cancelled once it has started", j.id(), startPatience)
}

// signal sends a signal to all processes of a running job.
func (c *Controller) signal(id uint32, sig syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.jobs[id]
	if j == nil || j.phase != running {
		return refuse(errs.Conflict, 2024, "job %d is not running", id)
	}
	if sig > 30 {
		return refuse(errs.Invalid, int(syscall.EINVAL), "signal %d can't be sent to a job", sig)
	}
	return gone(j.step.Signal(sig))
}

// gone forgives that a job ended by itself in this moment.
func gone(err error) error {
	if errors.Is(err, process.ErrGone) {
		return nil
	}
	return err
}
