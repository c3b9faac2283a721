package ctld

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"schedrestd/bundled/ctld/step"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// handleUpdate changes a job, and sends the answer when the change is on disk.
// It changes either all fields in the request or none.
//
// Owners may change the name, comment and extra of their jobs, and may shorten
// the jobs' time limits. They may also hold and release their jobs, lower their
// priority and set their nice value; if a job has started, this is for the time
// after a requeue. While a job is waiting, its owner may also change its account,
// QOS, workload key, begin time, partition and time limit.
//
// Root and the scheduler's user may make the same changes to all jobs. They may
// also change admin_comment, raise priorities, set negative nice values and
// extend the time limit of a running job. If they hold another user's job, only
// they can release it (but see userHold).
//
// handleUpdate returns these errors:
//
//   - 2017: there is no such job, or the client may not see it.
//   - 2002: the client may not make this change.
//   - 2020: the job is changing its state.
//   - 2036: this controller can't change a field in the request.
//   - 2073: the job is no longer waiting.
//   - 2084: the job has ended.
func (c *Controller) handleUpdate(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.SubmitRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	d := &q.Desc
	jobText := cmp.Or(d.JobIDText, fmt.Sprint(d.JobID.Number))
	if err := c.updateJob(r.Identity, jobText, d); err != nil {
		return jobError(jobText, err)
	}
	c.log.Info("job changed", clientAttrs(r, "job", jobText)...)
	return success()
}

// jobError returns the answer to a refused request to change a job. The
// argument err says why the request was refused. Slurm's commands expect an
// error message in this answer. Most other answers contain no such message.
func jobError(jobText string, err error) (message.Type, message.Body, error) {
	number, text := fault.Number(err)
	if number == fault.Internal {
		return 0, nil, err
	}
	list := []message.JobArrayError{{Code: number, JobIDs: jobText, Message: text}}
	return message.ResponseJobArrayErrors, &message.JobArrayErrors{Errors: list}, nil
}

// updateJob changes the job that the client names. It changes the fields that
// are set in d.
func (c *Controller) updateJob(client server.Identity, jobText string, d *model.JobDesc) error {
	id, err := jobID(jobText)
	if err != nil {
		return err
	}
	c.mu.Lock()
	j, err := c.editableJobLocked(client, id)
	var at phase
	if err == nil {
		at = j.phase
	}
	c.mu.Unlock()
	switch {
	case err != nil:
		return err
	case at == ended:
		return refuse(errs.Conflict, fault.JobFinished, "job %d has already ended", id)
	}
	if err := checkUpdate(client.UID, d, c.super(client.UID), at != waiting, time.Now()); err != nil {
		return err
	}
	if err := c.lockEdit(j, time.Now().Add(startTimeout)); err != nil {
		return err
	}
	defer j.editMu.Unlock()
	foldNames(d)
	u := jobUpdate{c: c, client: client, d: d}
	if err := c.amend(j, client.UID, func() (func(*record), error) { return u.decideLocked(j) }); err != nil {
		return err
	}
	if u.limitChanged {
		return c.applyTimeLimit(j)
	}
	return nil
}

// changeableFields are the fields that checkUpdate permits.
const changeableFields = "account, admin_comment, begin_time, comment, extra, hold, name, nice, partition, " +
	"priority, qos, time_limit and wckey"

// commandFlags are flags that have no effect. The scontrol command of Slurm
// 24.11 sends them with each update.
const commandFlags = 0x1e00_0000

// checkUpdate returns an error if this controller does not support a change. It
// also returns an error if an ordinary user requests a change that only root
// and the scheduler's user may make. The argument started says whether the job has
// started.
func checkUpdate(uid uint32, d *model.JobDesc, super, started bool, now time.Time) error {
	remaining := *d
	remaining.JobID, remaining.JobIDText = model.Opt[uint32]{}, ""
	remaining.AllocSID, remaining.SubmitLine = model.Opt[uint32]{}, ""
	for _, field := range []*model.Opt[uint16]{
		&remaining.OOMKillStep, &remaining.NTasksPerBoard, &remaining.BoardsPerNode, &remaining.SocketsPerBoard,
		&remaining.ResvPortCnt, &remaining.SegmentSize, &remaining.MemUpdateDelay, &remaining.MemUpdateMargin,
	} {
		if field.Number == 0 { // scontrol sends this value for fields that are not set
			*field = model.Opt[uint16]{}
		}
	}
	if remaining.PowerFlags.Number == 0 { // scontrol 22.05 sends this value
		remaining.PowerFlags = model.Opt[uint8]{}
	}
	remaining.Flags &^= commandFlags
	remaining.Account, remaining.AdminComment, remaining.Comment, remaining.Extra = "", "", "", ""
	remaining.Name, remaining.Partition, remaining.QOS, remaining.WCKey = "", "", "", ""
	remaining.Nice, remaining.Priority, remaining.TimeLimit = model.Opt[uint32]{}, model.Opt[uint32]{}, model.Opt[uint32]{}
	remaining.BeginTime = 0
	switch {
	case remaining.UserID.Set && remaining.UserID.Number != uid && !super:
		return refuseField(errs.Denied, fault.NoUserID, "user_id", "you may not give your job to another user")
	case d.BeginTime > model.At(now.Add(maxBeginDelay)):
		return refuseField(errs.Invalid, fault.InvalidTimeValue, "begin_time",
			"more than %d days ahead", maxBeginDelay/(24*time.Hour))
	}
	if err := checkUnchangeable(&remaining, started); err != nil {
		return err
	}
	if err := checkRestricted(d, super); err != nil {
		return err
	}
	return checkTexts(d)
}

// jobUpdate is one change of a job.
type jobUpdate struct {
	c            *Controller
	client       server.Identity
	d            *model.JobDesc
	limitChanged bool // the time limit of a started job has changed
}

// decideLocked returns a function that changes j's record, or an error if the
// job can't be changed.
func (u *jobUpdate) decideLocked(j *job) (func(*record), error) {
	d, pending := u.d, j.phase == waiting
	super := u.c.super(u.client.UID)
	for _, t := range []struct {
		field string
		set   bool
	}{
		{"account", !d.Account.Empty() && d.Account.String() != j.Job.Account},
		{"qos", !d.QOS.Empty() && d.QOS.String() != j.Job.QOS},
		{"wckey", !d.WCKey.Empty() && d.WCKey.String() != j.Job.WCKey},
		{"begin_time", d.BeginTime != 0},
		{"partition", !d.Partition.Empty() && d.Partition.String() != j.Job.Partition},
	} {
		if t.set && !pending {
			return nil, refuse(errs.Conflict, fault.JobNotPending,
				"job %d has started, so it has no %s to change", j.number, t.field)
		}
	}
	part, err := u.partition(j)
	if err != nil {
		return nil, err
	}
	priority, reason, err := u.priority(j, super)
	if err != nil {
		return nil, err
	}
	limit, err := u.timeLimit(j, part, super)
	if err != nil {
		return nil, err
	}
	u.limitChanged = !pending && limit != j.Job.TimeLimit
	released, now := j.held() && priority != 0, model.At(time.Now())
	return func(r *record) {
		m := &r.Job
		for _, t := range []struct {
			field *string
			text  model.Text
		}{
			{&m.Account, d.Account}, {&m.AdminComment, d.AdminComment}, {&m.Comment, d.Comment}, {&m.Extra, d.Extra},
			{&m.Name, d.Name}, {&m.QOS, d.QOS}, {&m.WCKey, d.WCKey},
		} {
			if t.text != "" {
				*t.field = t.text.String()
			}
		}
		if d.BeginTime != 0 {
			m.EligibleTime = d.BeginTime
		}
		if d.Priority != (model.Opt[uint32]{}) || d.Nice.Set {
			m.Priority, m.StateReason = priority, reason
		}
		if released && pending {
			m.EligibleTime, m.AccrueTime = max(m.EligibleTime, now), now
		}
		m.Nice = d.Nice.Or(m.Nice)
		if part != nil {
			m.Partition = part.Name
		}
		m.TimeLimit = limit
		if u.limitChanged {
			r.LimitChanged, m.EndTime = true, limitReachedAt(m)
		}
	}, nil
}

// limitReachedAt returns the time at which a job that has started will reach
// its time limit. It returns 0 if there is no such time.
func limitReachedAt(m *model.Job) model.Time {
	if m.StartTime == 0 || !m.TimeLimit.Set {
		return 0
	}
	return m.StartTime + model.Time(m.TimeLimit.Number)*60
}

// userHold is a value of Slurm's JobDesc.AllocSID. If an administrator's
// request to hold a job contains this value, the job's owner may release the
// job.
const userHold = 2

// priority returns the new priority of j, and the reason why j waits. If j has
// started, both are for the time after a requeue. A nice
// value changes only the usual priority of a job. If the job was given another
// priority, the nice value has no effect.
func (u *jobUpdate) priority(j *job, super bool) (priority, reason uint32, err error) {
	requested, current := u.d.Priority, j.Job.Priority
	usual := usualPriority(j.number, u.d.Nice.Or(j.Job.Nice))
	if current == usualPriority(j.number, j.Job.Nice) {
		current = usual
	}
	if requested == (model.Opt[uint32]{}) {
		return current, j.Job.StateReason, nil
	}
	heldByAdmin := j.held() && j.Job.StateReason == reasonHeldAdmin
	switch {
	case requested.Set && requested.Number == 0:
		switch {
		case heldByAdmin && !super, heldByAdmin && u.d.AllocSID.Or(0) != userHold:
			return 0, reasonHeldAdmin, nil
		case super && u.client.UID != j.Job.UserID && u.d.AllocSID.Or(0) != userHold:
			return 0, reasonHeldAdmin, nil
		}
		return 0, reasonHeldUser, nil
	case heldByAdmin && !super:
		return 0, 0, refuseField(errs.Denied, fault.AccessDenied, "priority",
			"an administrator holds job %d, and only administrators may release it", j.number)
	case requested.Infinite && !j.held():
		return current, reasonNone, nil
	case requested.Infinite:
		return usual, reasonNone, nil
	case !super && (requested.Number > current && !j.held() || requested.Number > usual):
		return 0, 0, refuseField(errs.Denied, fault.AccessDenied, "priority", "only root and the scheduler's user may raise it")
	}
	return requested.Number, reasonNone, nil
}

// partition returns the partition to which j will be moved. It returns nil if j
// stays in its partition.
func (u *jobUpdate) partition(j *job) (*model.Partition, error) {
	if u.d.Partition.Empty() || u.d.Partition.String() == j.Job.Partition {
		return nil, nil
	}
	return u.c.partitionOf(u.d)
}

// timeLimit returns the new time limit of j. If part is not nil, j will be
// moved to the partition part.
func (u *jobUpdate) timeLimit(j *job, part *model.Partition, super bool) (model.Opt[uint32], error) {
	current, requested := j.Job.TimeLimit, u.d.TimeLimit
	if requested == (model.Opt[uint32]{}) || requested == current {
		if part == nil || super {
			return current, nil
		}
		return timeLimit(current, part)
	}
	longer := requested.Infinite || current.Set && requested.Number > current.Number
	switch {
	case j.phase != waiting && longer && !super:
		return current, refuseField(errs.Denied, fault.AccessDenied, "time_limit",
			"only root and the scheduler's user may extend it after the job has started")
	case j.phase == running && !j.step.Claim.Adjustable():
		return current, refuseField(errs.Unsupported, fault.NotSupported, "time_limit",
			"job %d was started by an older release, so its time limit can't be changed", j.number)
	case super, requested.Set && requested.Number == 0: // the job ends at once
		return requested, nil
	}
	for i := range u.c.cfg.Partitions {
		if p := &u.c.cfg.Partitions[i]; p.Name == cmp.Or(u.d.Partition.String(), j.Job.Partition) {
			return timeLimit(requested, p)
		}
	}
	return requested, nil
}

// stepLimit returns the time limit of m for a step, for which 0 is no limit. A
// job with a limit of 0 minutes ends as soon as it has started.
func (c *Controller) stepLimit(m *model.Job) time.Duration {
	if m.TimeLimit.Set && m.TimeLimit.Number == 0 {
		return 1
	}
	return time.Duration(m.TimeLimit.Number) * c.cfg.minute
}

// applyTimeLimit makes the step of job j obey the time limit in j's
// record. If j has no step yet, applyTimeLimit does nothing:
// Controller.follow applies the limit when the step runs. The caller holds
// j.editMu.
func (c *Controller) applyTimeLimit(j *job) error {
	c.mu.Lock()
	limit, phase := c.stepLimit(&j.Job), j.phase
	c.mu.Unlock()
	if phase != running {
		return nil
	}
	if err := step.SetTimeLimit(j.home, limit); err != nil {
		return fmt.Errorf("time limit of job %d: %w", j.number, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock() // j.step is closed under c.mu
	if j.step == nil {
		return nil
	}
	return ignoreGone(j.step.ReloadTimeLimit())
}

// reapplyTimeLimit makes the step of job j obey a time limit that was changed
// before the controller attached to that step.
func (c *Controller) reapplyTimeLimit(j *job) {
	j.editMu.Lock()
	defer j.editMu.Unlock()
	c.mu.Lock()
	adjustable := j.step != nil && j.step.Claim.Adjustable()
	c.mu.Unlock()
	err := errors.New("the job has ended, or an older release started it")
	if adjustable {
		err = c.applyTimeLimit(j)
	}
	if err != nil {
		c.log.Error("changing time limit failed", "job", j.number, "error", err)
	}
}
