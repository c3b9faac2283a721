package ctld

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"schedrestd/bundled/ctld/failpoint"
	"schedrestd/bundled/ctld/journal"
	"schedrestd/bundled/ctld/process"
	"schedrestd/bundled/ctld/step"
	"schedrestd/model"
)

// schedule starts the jobs that the queue selects. It sets beginTimer to the
// earliest future time at which a waiting job may start.
func (c *Controller) schedule(beginTimer *time.Timer) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	permit := func(id uint32) bool { return c.breakers.permit(c.jobs[id].Job.UserID, id, now) }
	for _, id := range c.queue.Start(now, permit) {
		j := c.jobs[id]
		j.phase = starting
		c.updateLocked(j, now, func(m *model.Job) {
			m.State, m.StateReason, m.StartTime = model.JobRunning|model.JobConfiguring, reasonNone, model.At(now)
			m.StateDescription = ""
		})
		c.tasks.Go(func() { c.launch(j, now) })
	}
	next, resume := c.queue.NextBegin(now), c.breakers.next(now)
	if next.IsZero() || !resume.IsZero() && resume.Before(next) {
		next = resume
	}
	if !next.IsZero() {
		beginTimer.Reset(next.Sub(now))
	}
}

// launch starts job j, which is in phase starting, and follows the job until it
// ends. The argument now is the time of the start.
func (c *Controller) launch(j *job, now time.Time) {
	s, err := c.start(j)
	c.notePause(j, now, err)
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
	if errors.Is(err, journal.ErrDamaged) {
		return nil, fmt.Errorf("%w: %w", errNoSpec, err)
	}
	if err != nil {
		return nil, err
	}
	spec := new(step.Spec)
	if err := json.Unmarshal(b, spec); err != nil { // b is empty if the journal contains no spec
		return nil, fmt.Errorf("%w: %w", errNoSpec, err)
	}
	c.mu.Lock()
	m := &j.record.Job
	c.mu.Unlock()
	user, err := c.cfg.Users.LookupUID(m.UserID)
	if err != nil {
		return nil, fmt.Errorf("%w: uid %d: %w", errLookup, m.UserID, err)
	}
	if m.UserName != "" && user.Name != m.UserName {
		return nil, fmt.Errorf("%w: uid %d belongs to %s, not to %s", errOtherUser, m.UserID, user.Name, m.UserName)
	}
	if c.uid == 0 {
		groups, err := c.cfg.Users.Groups(user)
		if err != nil {
			return nil, fmt.Errorf("%w: groups of user %s: %w", errLookup, user, err)
		}
		spec.User = &step.User{UID: user.UID, GID: m.GroupID, Groups: groups}
	}
	spec.Job, spec.Home = j.id(), j.home
	spec.KillWait, spec.Cgroup = c.cfg.KillWait, c.cgroup
	spec.TimeLimit = c.stepLimit(m) // may have been changed after the submission
	spec.Environment = c.environment(spec.Environment, m, user)
	return spec, nil
}

// adoptStep follows a job that a step has claimed. An earlier controller may
// have started that step.
func (c *Controller) adoptStep(j *job) {
	claim, ok, err := readStepFile(c, j, step.ReadClaim)
	if c.ctx.Err() != nil {
		return
	}
	if err == nil && !ok {
		err = errors.New("the step left no claim")
	}
	if err != nil {
		c.handleLost(j, step.Claim{}, err.Error())
		return
	}
	for c.ctx.Err() == nil {
		s, err := step.Adopt(claim)
		switch {
		case err == nil:
			c.follow(j, s)
			return
		case errors.Is(err, process.ErrGone):
			c.conclude(j, claim)
			return
		}
		c.log.Error("adopting step failed", "job", j.id(), "step", claim.Step, "error", err)
		_ = sleep(c.ctx, c.seconds(maxPause))
	}
}

// maxReadFailure is how long the controller tries to read a file of a step.
const maxReadFailure = 10 * time.Minute

// readStepFile reads a file of job j's step. If the file can't be read, for
// example because this process has too many open files, readStepFile tries
// again. Otherwise a job that has run would be reported as lost. If the file is
// damaged, or can't be read for maxReadFailure, readStepFile returns an error.
func readStepFile[T any](c *Controller, j *job, read func(home string) (T, bool, error)) (content T, ok bool, err error) {
	began, pause := time.Now(), c.seconds(1)
	for {
		content, ok, err = read(j.home)
		if err == nil || errors.Is(err, step.ErrDamaged) || errors.Is(err, step.ErrNewer) || time.Since(began) > maxReadFailure {
			return content, ok, err
		}
		c.log.Error("reading step file failed", "job", j.id(), "error", err)
		if sleep(c.ctx, pause) != nil {
			return content, false, err
		}
		pause = min(2*pause, c.seconds(maxPause))
	}
}

// follow marks job j as running in step s, and waits until the step exits. If
// the controller stops first, the job continues to run.
func (c *Controller) follow(j *job, s *step.Step) {
	c.mu.Lock()
	j.phase, j.step = running, s
	c.updateLocked(j, time.Now(), func(m *model.Job) {
		m.State = model.JobRunning
		c.setAllocation(m)
		m.StartTime, m.EndTime = model.At(s.Claim.Started), 0
		if limit := m.TimeLimit; limit.Set {
			m.EndTime = m.StartTime + model.Time(limit.Number)*60
		}
	})
	startRecord := j.record
	cancelled, by := j.cancelled, j.Job.Run.CancelledBy
	kill, limitChanged := cancelled || j.Requeue != requeueNone, j.LimitChanged
	if kill {
		c.updateLocked(j, time.Now(), func(m *model.Job) { m.State |= model.JobCompleting })
	}
	c.mu.Unlock()
	c.log.Info("job started", "job", j.id(), "step", s.Claim.Step)
	if limitChanged {
		c.reapplyTimeLimit(j)
	}
	if kill {
		s.Cancel()
	}
	if cancelled { // before this, so that only this process may know of it
		if err := c.recordCancel(j, by.Number, time.Now().Add(startTimeout)); err != nil {
			c.log.Error("recording cancellation failed", "job", j.id(), "uid", by.Number, "error", err)
		}
	}
	if c.spool != nil {
		if err := c.spool.add(startRecord.accounted()); err != nil {
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
	o, ok, err := readStepFile(c, j, step.ReadOutcome)
	if c.ctx.Err() != nil {
		return // the next controller reads the file
	}
	switch {
	case err != nil:
		c.log.Error("outcome unreadable", "job", j.id(), "error", err)
		c.handleLost(j, claim, "the record of the job's outcome can't be read")
		return
	case !ok:
		c.handleLost(j, claim, "the step process exited without recording an outcome")
		return
	}
	failpoint.Here("outcome")
	if o.State == step.NotStarted {
		c.runAgain(j, o.Reason)
		return
	}
	c.mu.Lock()
	j.failures, j.retryAt = 0, time.Time{}
	c.mu.Unlock()
	c.finish(j, func(m *model.Job) {
		m.StartTime, m.EndTime = model.At(o.Started), model.At(o.Ended)
		m.Run.HasUsage, m.Run.Status, m.Run.MaxRSS = true, o.Status, o.MaxRSS
		m.Run.UserTime, m.Run.SystemTime = uint64(o.UserTime.Microseconds()), uint64(o.SystemTime.Microseconds())
		m.ExitCode = o.Status // DerivedExitCode stays 0: it is about steps other than the script
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

// finish handles the end of a run of job j. It calls change to record how the run
// ended. If the job is to be requeued and was not cancelled, finish puts it back
// into the queue. Otherwise finish ends the job.
//
// Until the changed record is in the journal, only the step's files show how
// the job ended. So finish removes these files last.
func (c *Controller) finish(j *job, change func(*model.Job)) {
	j.editMu.Lock()
	defer j.editMu.Unlock()
	now := time.Now()
	c.mu.Lock()
	r := *j.record
	r.Requeue, r.LimitChanged = requeueNone, false
	r.Job.EndTime = 0 // the time at which the limit would have been reached
	change(&r.Job)
	m := &r.Job
	m.EndTime = max(cmp.Or(m.EndTime, model.At(now)), m.StartTime) // the clock may have been set back since the start
	hasRun := m.StartTime != 0
	m.StartTime = cmp.Or(m.StartTime, m.EndTime)
	requeued := j.Requeue != requeueNone && !j.cancelled
	c.mu.Unlock()
	if requeued {
		c.queueNextRun(j, m, hasRun)
		return
	}

	if !c.persist(&r, nil, journal.Entry{Key: key(specPrefix, uint64(j.id()))}) {
		return // the controller is stopping; the next one reads the files
	}
	failpoint.Here("finished")
	if err := step.RemoveHome(j.home); err != nil {
		c.log.Warn("removing step files failed", "job", j.id(), "error", err)
	}
	recordBytes := c.recordSize(j)
	c.mu.Lock()
	j.record, j.phase = &r, ended
	c.setLoadLocked(j, c.jobLoad(j, recordBytes))
	if j.step != nil {
		j.step.Close()
		j.step = nil
	}
	c.queue.Release(j.id())
	c.queue.Remove(j.id())
	c.markChangedLocked(now)
	c.idleSince = model.At(now)
	c.mu.Unlock()
	c.log.Info("job ended", "job", j.id(), "state", uint32(r.Job.State.Base()), "status", r.Job.ExitCode)
	c.wakeScheduler()
}

// persist writes record r and the entries in extra to the journal. If previous is
// not nil, accounting also gets this run of the job. If a write
// fails, for example because the disk is full, persist retries. It returns true
// after a successful write, and false if the controller stops first.
func (c *Controller) persist(r, previous *record, extra ...journal.Entry) bool {
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		e, err := r.entry()
		commit := func(spooled ...journal.Entry) error {
			return c.journal.Commit(slices.Concat(extra, spooled, []journal.Entry{e})...)
		}
		addRecord := func(spooled ...journal.Entry) error {
			return c.spool.addWith(r.accounted(), func(next journal.Entry) error { return commit(append(spooled, next)...) })
		}
		switch {
		case err != nil:
		case c.spool == nil:
			err = commit()
		case previous == nil:
			err = addRecord()
		default:
			err = c.spool.addWith(previous.accounted(), func(run journal.Entry) error { return addRecord(run) })
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
