package ctld

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"schedrestd/ctld/failpoint"
	"schedrestd/ctld/journal"
	"schedrestd/ctld/process"
	"schedrestd/ctld/step"
	"schedrestd/errs"
	"schedrestd/model"
)

// maxAttempts is the maximum number of attempts to start a job. An attempt may
// fail, for example, because the disk is full.
const maxAttempts = 3

// schedule starts the jobs that the queue selects. It sets beginTimer to the
// earliest future begin time of a waiting job.
func (c *Controller) schedule(beginTimer *time.Timer) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range c.queue.Start(now) {
		j := c.jobs[id]
		j.phase = starting
		c.update(j, now, func(m *model.Job) {
			m.State, m.StateReason, m.StartTime = model.JobRunning|model.JobConfiguring, reasonNone, model.At(now)
		})
		c.tasks.Go(func() { c.launch(j) })
	}
	if next := c.queue.NextBegin(now); !next.IsZero() {
		beginTimer.Reset(next.Sub(now))
	}
}

// launch starts job j, which is in phase starting, and follows the job until it
// ends.
func (c *Controller) launch(j *job) {
	s, err := c.start(j)
	switch {
	case err == nil:
		c.follow(j, s)
	case errors.Is(err, step.ErrClaimed):
		// A step that an earlier controller started has claimed the job in the
		// meantime.
		c.adoptStep(j)
	default:
		c.handleStartFailure(j, err)
	}
}

// start prepares and starts a step for j.
func (c *Controller) start(j *job) (*step.Step, error) {
	spec, err := c.spec(j)
	if err != nil {
		return nil, err
	}
	if err := step.Prepare(spec.Home); err != nil {
		return nil, err
	}
	failpoint.Here("prepared")
	s, err := c.program.Start(spec, c.stepLog)
	failpoint.Here("started")
	return s, err
}

// spec returns the recorded spec of a job. It adds the values that are known
// only when the job starts, such as the user's groups and the variables that
// describe the job.
func (c *Controller) spec(j *job) (*step.Spec, error) {
	b, err := c.journal.Get(key(specPrefix, uint64(j.id())))
	if err == nil && b == nil {
		err = errors.New("job script missing from the journal")
	}
	if err != nil {
		return nil, err
	}
	spec := new(step.Spec)
	if err := json.Unmarshal(b, spec); err != nil {
		return nil, err
	}
	c.mu.Lock()
	m := &j.record.Job
	c.mu.Unlock()
	user, err := c.cfg.Users.LookupUID(m.UserID)
	if err != nil {
		return nil, fmt.Errorf("user %d: %w", m.UserID, err)
	}
	if m.UserName != "" && user.Name != m.UserName {
		return nil, errs.Wrap(errOtherUser, errs.NotFound, "uid %d belongs to %s, not to %s", m.UserID, user.Name, m.UserName)
	}
	if c.uid == 0 {
		groups, err := c.cfg.Users.Groups(user)
		if err != nil {
			return nil, fmt.Errorf("groups of user %s: %w", user, err)
		}
		spec.User = &step.User{UID: user.UID, GID: m.GroupID, Groups: groups}
	}
	spec.Job, spec.Home = j.id(), j.home
	spec.KillWait, spec.Cgroup = c.cfg.KillWait, c.cgroup
	spec.TimeLimit = time.Duration(m.TimeLimit.Number) * c.cfg.minute // may have been changed after the submission
	spec.Environment = c.environment(spec.Environment, m, user)
	return spec, nil
}

// errOtherUser is returned when the job's uid has been given to a different
// user since the job was submitted. The job must not get access to the new
// user's files.
var errOtherUser = errors.New("not the user that submitted the job")

// adoptStep follows a job that a step has claimed. An earlier controller may
// have started that step.
func (c *Controller) adoptStep(j *job) {
	claim, ok, err := step.ReadClaim(j.home)
	if err == nil && !ok {
		err = errors.New("the step left no claim")
	}
	if err != nil {
		c.handleLost(j, step.Claim{}, err.Error())
		return
	}
	s, err := step.Adopt(claim)
	switch {
	case err == nil:
		c.follow(j, s)
	case errors.Is(err, process.ErrGone):
		c.conclude(j, claim)
	default:
		c.handleStartFailure(j, err)
	}
}

// follow marks job j as running in step s, and waits until the step exits. If
// the controller stops first, the job continues to run.
func (c *Controller) follow(j *job, s *step.Step) {
	c.mu.Lock()
	j.phase, j.step = running, s
	c.update(j, time.Now(), func(m *model.Job) {
		m.State = model.JobRunning
		c.setAllocation(m)
		m.StartTime, m.EndTime = model.At(s.Claim.Started), 0
		if limit := m.TimeLimit; limit.Set {
			m.EndTime = m.StartTime + model.Time(limit.Number)*60
		}
	})
	startRecord := j.record
	kill, limitChanged := j.cancelled || j.Requeue != requeueNone, j.LimitChanged
	if kill {
		c.update(j, time.Now(), func(m *model.Job) { m.State |= model.JobCompleting })
	}
	c.mu.Unlock()
	c.log.Info("job started", "job", j.id(), "step", s.Claim.Step)
	if limitChanged {
		c.reapplyTimeLimit(j)
	}
	if kill {
		s.Cancel()
	}
	if c.spool != nil {
		if err := c.spool.add(startRecord.Job); err != nil {
			c.log.Error("spooling job for accounting failed", "job", j.id(), "error", err)
		}
	}
	if err := s.Wait(c.ctx); err != nil {
		if c.ctx.Err() == nil {
			c.log.Error("waiting for step failed", "job", j.id(), "error", err)
		}
		return
	}
	c.conclude(j, s.Claim)
}

// conclude records how job j ended. The job's step has exited.
func (c *Controller) conclude(j *job, claim step.Claim) {
	o, ok, err := step.ReadOutcome(j.home)
	if err != nil || !ok {
		c.handleLost(j, claim, "the step process exited without recording an outcome")
		return
	}
	failpoint.Here("outcome")
	c.finish(j, func(m *model.Job) {
		m.StartTime, m.EndTime = model.At(o.Started), model.At(o.Ended)
		m.ExitCode, m.DerivedExitCode = o.Status, o.Status
		m.StateDescription = o.Reason
		m.State, m.StateReason = finalState(o)
		c.setAllocation(m)
	})
}

// finalState translates an outcome into the job state and the state reason that
// clients see.
func finalState(o step.Outcome) (model.JobState, uint32) {
	switch o.State {
	case step.Completed:
		return model.JobComplete, reasonNone
	case step.Cancelled:
		return model.JobCancelled, reasonNone
	case step.Timeout:
		return model.JobTimeout, reasonTimeLimit
	case step.OutOfMemory:
		return model.JobOutOfMemory, reasonNone
	}
	switch {
	case o.Reason != "":
		return model.JobFailed, reasonLaunch
	case o.Status&0x7f != 0:
		return model.JobFailed, reasonSignal
	}
	return model.JobFailed, reasonExitCode
}

// These are the numbers of the state reasons that this controller uses.
const (
	reasonNone      = 0
	reasonResources = 3
	reasonHeldAdmin = 8
	reasonBegin     = 9
	reasonHeldUser  = 16
	reasonNodeDown  = 20
	reasonLaunch    = 23
	reasonExitCode  = 24
	reasonTimeLimit = 25
	reasonSignal    = 33
)

// handleLost records that a job is lost: its step was killed or the machine
// rebooted, and no outcome was recorded. The job is not started again, because
// it may have done part of its work.
func (c *Controller) handleLost(j *job, claim step.Claim, reason string) {
	c.log.Error("job lost", "job", j.id(), "reason", reason)
	if claim.Step.PID != 0 {
		c.mu.Lock()
		uid := j.Job.UserID
		c.mu.Unlock()
		if n, err := step.KillOrphans(claim, uid); err != nil {
			c.log.Error("killing processes of a dead step failed", "job", j.id(), "killed", n, "error", err)
		}
	}
	c.finish(j, func(m *model.Job) {
		if !claim.Started.IsZero() {
			m.StartTime = model.At(claim.Started)
			c.setAllocation(m)
		}
		m.State, m.StateReason, m.StateDescription = model.JobNodeFail, reasonNodeDown, reason
		m.FailedNode = c.cfg.Node
	})
}

// handleStartFailure requeues a job that could not be started. In three cases
// it ends the job instead: maxAttempts attempts have failed, the job was
// cancelled, or its uid no longer belongs to the user that submitted it.
func (c *Controller) handleStartFailure(j *job, err error) {
	if c.ctx.Err() != nil {
		return // the next controller handles the job
	}
	if e := step.Withdraw(j.home); errors.Is(e, step.ErrClaimed) {
		c.adoptStep(j)
		return
	}
	c.log.Error("starting job failed", "job", j.id(), "error", err)
	c.mu.Lock()
	j.attempts++
	retry := j.attempts < maxAttempts && !j.cancelled && errs.KindOf(err) != errs.NotFound
	if retry {
		c.queue.Release(j.id())
		now := time.Now()
		next := now.Add(time.Duration(j.attempts) * c.cfg.minute / 12)
		c.queue.Add(j.id(), j.Need, next, j.Job.Priority)
		j.phase = waiting
		c.update(j, now, func(m *model.Job) { m.State, m.StartTime, m.EligibleTime = model.JobPending, 0, model.At(next) })
	}
	cancelled := j.cancelled
	c.mu.Unlock()
	if retry {
		c.wakeScheduler()
		return
	}
	c.finish(j, func(m *model.Job) {
		if cancelled {
			m.State = model.JobCancelled
			return
		}
		m.State, m.StateReason, m.ExitCode = model.JobFailed|model.JobLaunchFailed, reasonLaunch, 1<<8
		m.StateDescription = "the job could not be started"
		switch {
		case errors.Is(err, errOtherUser):
			m.StateDescription = fmt.Sprintf("uid %d no longer belongs to user %s", m.UserID, m.UserName)
		case errs.KindOf(err) == errs.NotFound:
			m.StateDescription = "the job's user no longer exists"
		}
	})
}

// finish handles the end of a run of job j. If the job is to be requeued and
// was not cancelled, finish puts it back into the queue. Otherwise finish ends
// the job and calls change to record how it ended.
//
// Until the changed record is in the journal, only the step's files show how
// the job ended. So finish removes these files last.
func (c *Controller) finish(j *job, change func(*model.Job)) {
	j.editMu.Lock()
	defer j.editMu.Unlock()
	now := time.Now()
	c.mu.Lock()
	if j.Requeue != requeueNone && !j.cancelled {
		c.mu.Unlock()
		c.queueNextRun(j)
		return
	}
	r := *j.record
	r.Requeue, r.LimitChanged = requeueNone, false
	change(&r.Job)
	if r.Job.EndTime == 0 || r.Job.EndTime > model.At(now) {
		r.Job.EndTime = model.At(now)
	}
	if r.Job.StartTime == 0 {
		r.Job.StartTime = r.Job.EndTime
	}
	c.mu.Unlock()

	if !c.persist(&r, journal.Entry{Key: key(specPrefix, uint64(j.id()))}) {
		return // the controller is stopping; the next one reads the files
	}
	failpoint.Here("finished")
	if err := step.RemoveHome(j.home); err != nil {
		c.log.Warn("removing step files failed", "job", j.id(), "error", err)
	}
	recordBytes := c.recordSize(j)
	c.mu.Lock()
	j.record, j.phase = &r, ended
	c.setLoad(j, c.jobLoad(j, recordBytes))
	if j.step != nil {
		j.step.Close()
		j.step = nil
	}
	c.queue.Release(j.id())
	c.queue.Remove(j.id())
	c.markChanged(now)
	c.idleSince = model.At(now)
	c.mu.Unlock()
	c.log.Info("job ended", "job", j.id(), "state", uint32(r.Job.State.Base()), "status", r.Job.ExitCode)
	c.wakeScheduler()
}

// persist writes record r and the entries in extra to the journal. If a write
// fails, for example because the disk is full, persist retries. It returns true
// after a successful write, and false if the controller stops first.
func (c *Controller) persist(r *record, extra ...journal.Entry) bool {
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		e, err := r.entry()
		switch {
		case err != nil:
		case c.spool != nil:
			err = c.spool.addWith(r.Job, func(spooled journal.Entry) error {
				return c.journal.Commit(append(extra[:len(extra):len(extra)], spooled, e)...)
			})
		default:
			err = c.journal.Commit(append(extra[:len(extra):len(extra)], e)...)
		}
		if err == nil {
			return true
		}
		c.log.Error("recording end of job failed", "job", r.Job.StepID.JobID, "error", err)
		if sleep(c.ctx, pause) != nil {
			return false
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
