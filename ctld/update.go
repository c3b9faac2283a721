package ctld

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"schedrestd/ctld/step"
	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// handleUpdate changes a job. It answers when the change is on disk.
//
// Owners may change the texts of their jobs, hold and release the jobs, and
// lower their priority and time limit. For waiting jobs they may also set begin
// time, partition, nice value and time limit. Root and the scheduler's user may
// do all of this for all jobs. They may also raise priorities, set negative
// nice values and extend the time limit of a running job. If they hold a job,
// only they can release it.
//
// Either all fields are changed or none. Errors: 2017, there is no such job or
// the client may not see it; 2002, the client may not do this; 2020, the job is
// changing its state; 2036, this controller can't change that field; 2073, the
// job no longer waits; 2084, it has ended.
func (c *Controller) handleUpdate(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.SubmitRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	d := &q.Desc
	named := d.JobIDText
	if named == "" {
		named = fmt.Sprint(d.JobID.Number)
	}
	if err := c.updateJob(r.Identity, named, d); err != nil {
		return aboutJob(named, err)
	}
	c.log.Info("job changed", asker(r, "job", named)...)
	return done()
}

// aboutJob returns the answer to a request that would have changed a job but
// was refused with err. Unlike most answers, it contains a text. Slurm's
// commands expect it in this form.
func aboutJob(named string, err error) (message.Type, message.Body, error) {
	number, text := fault.Number(err)
	if number == fault.Internal {
		return 0, nil, err
	}
	return message.ResponseJobArrayErrors, &message.JobArrayErrors{Errors: []message.JobArrayError{{Code: number, JobIDs: named, Message: text}}}, nil
}

// updateJob changes the job that the client names. It sets the fields that are
// set in d.
func (c *Controller) updateJob(client server.Identity, named string, d *model.JobDesc) error {
	id, err := jobID(named)
	if err != nil {
		return err
	}
	c.mu.Lock()
	j, err := c.owned(client, id)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if err := checkUpdate(client.UID, d, c.super(client.UID), time.Now()); err != nil {
		return err
	}
	if err := c.lockEdit(j, time.Now().Add(startPatience)); err != nil {
		return err
	}
	defer j.edit.Unlock()
	u := update{c: c, client: client, d: d}
	if err := c.amend(j, client.UID, func() (func(*record), error) { return u.decide(j) }); err != nil {
		return err
	}
	if u.limited {
		return c.announce(j)
	}
	return nil
}

// changeable are the fields that checkUpdate permits.
const changeable = "account, admin_comment, begin_time, comment, extra, hold, name, nice, partition, priority, qos, time_limit and wckey"

// commandFlags are the flags that scontrol of Slurm 24.11 was observed to send
// with each update. They change nothing.
const commandFlags = 0x1e00_0000

// checkUpdate refuses changes that this controller does not support. It also
// refuses an ordinary user's changes that only root and the scheduler's user
// may make.
func checkUpdate(uid uint32, d *model.JobDesc, super bool, now time.Time) error {
	rest := *d
	rest.JobID, rest.JobIDText, rest.AllocSID, rest.SubmitLine = model.Opt[uint32]{}, "", model.Opt[uint32]{}, ""
	if rest.MailType == model.Leave16 {
		rest.MailType = 0
	}
	for _, field := range []*model.Opt[uint16]{&rest.OOMKillStep, &rest.NTasksPerBoard, &rest.BoardsPerNode, &rest.SocketsPerBoard, &rest.ResvPortCnt, &rest.SegmentSize,
		&rest.MemUpdateDelay, &rest.MemUpdateMargin} {
		if field.Number == 0 { // scontrol sends such fields with the value 0, and this controller supports none of them
			*field = model.Opt[uint16]{}
		}
	}
	if rest.PowerFlags.Number == 0 { // scontrol 22.05 sends this value
		rest.PowerFlags = model.Opt[uint8]{}
	}
	rest.Flags &^= commandFlags
	rest.Account, rest.AdminComment, rest.BeginTime, rest.Comment, rest.Extra, rest.Name = "", "", 0, "", "", ""
	rest.Priority, rest.QOS, rest.TimeLimit, rest.WCKey = model.Opt[uint32]{}, "", model.Opt[uint32]{}, ""
	rest.Nice, rest.Partition = model.Opt[uint32]{}, ""
	switch {
	case rest.UserID.Set && rest.UserID.Number != uid && !super:
		return refuseField(errs.Denied, fault.NoUserID, "user_id", "you may not give your job to another user")
	case !reflect.DeepEqual(rest, model.JobDesc{}):
		return refuse(errs.Unsupported, fault.NotSupported, "of a job, this controller can change only %s, and not %s", changeable, strings.Join(setFields(rest), ", "))
	case d.AdminComment != "" && !super:
		return refuseField(errs.Denied, fault.AccessDenied, "admin_comment", "only root and the scheduler's user may change it")
	case d.Nice.Set && d.Nice.Number < model.NiceOffset && !super:
		return refuseField(errs.Denied, fault.AccessDenied, "nice", "only root and the scheduler's user may set it below 0")
	case d.BeginTime > model.At(now.Add(maxWait)):
		return refuseField(errs.Invalid, fault.InvalidTimeValue, "begin_time", "more than %d days ahead", maxWait/(24*time.Hour))
	}
	return checkTexts(d)
}

// setFields returns the names of the fields of d that are set.
func setFields(d model.JobDesc) (names []string) {
	v := reflect.ValueOf(d)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			names = append(names, v.Type().Field(i).Name)
		}
	}
	return names
}

// update is one change of a job.
type update struct {
	c       *Controller
	client  server.Identity
	d       *model.JobDesc
	limited bool // the time limit of a started job has changed
}

// decide returns a function that changes j's record, or an error if the job
// can't be changed. The caller holds c.mu.
func (u *update) decide(j *job) (func(*record), error) {
	d, pending := u.d, j.phase == waiting
	super := u.c.super(u.client.UID)
	for _, t := range []struct {
		field string
		given bool
	}{{"begin_time", d.BeginTime != 0}, {"nice", d.Nice.Set}, {"partition", d.Partition != "" && d.Partition != j.Job.Partition}} {
		if t.given && !pending {
			return nil, refuse(errs.Conflict, fault.JobNotPending, "job %d has started, so it has no %s to change", j.number, t.field)
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
	u.limited = !pending && limit != j.Job.TimeLimit
	return func(r *record) {
		m := &r.Job
		for _, t := range []struct {
			field *string
			text  string
		}{
			{&m.Account, d.Account}, {&m.AdminComment, d.AdminComment}, {&m.Comment, d.Comment}, {&m.Extra, d.Extra},
			{&m.Name, d.Name}, {&m.QOS, d.QOS}, {&m.WCKey, d.WCKey},
		} {
			if t.text != "" {
				*t.field = t.text
			}
		}
		if d.BeginTime != 0 {
			m.EligibleTime = d.BeginTime
		}
		if d.Priority != (model.Opt[uint32]{}) || d.Nice.Set {
			m.Priority, m.StateReason = priority, reason
		}
		m.Nice = d.Nice.Or(m.Nice)
		if part != nil {
			m.Partition = part.Name
		}
		m.TimeLimit = limit
		if u.limited {
			r.Limited, m.EndTime = true, ends(m)
		}
	}, nil
}

// ends returns when a started job reaches its time limit, or 0.
func ends(m *model.Job) model.Time {
	if m.StartTime == 0 || !m.TimeLimit.Set {
		return 0
	}
	return m.StartTime + model.Time(m.TimeLimit.Number)*60
}

// userHold is the value of Slurm's JobDesc.AllocSID in an administrator's
// request for a hold that the owner may release.
const userHold = 2

// priority returns the new priority of j, and the reason why it waits. A nice
// value changes the usual priority of a job. It has no effect on a job to which
// another priority was given.
func (u *update) priority(j *job, super bool) (priority, reason uint32, err error) {
	wanted, now := u.d.Priority, j.Job.Priority
	usual := usualPriority(j.number, u.d.Nice.Or(j.Job.Nice))
	if now == usualPriority(j.number, j.Job.Nice) {
		now = usual
	}
	if wanted == (model.Opt[uint32]{}) {
		return now, j.Job.StateReason, nil
	}
	if j.phase != waiting {
		return 0, 0, refuse(errs.Conflict, fault.JobNotPending, "job %d has started, so its priority has no effect", j.number)
	}
	byAdmin := j.held() && j.Job.StateReason == reasonHeldAdmin
	switch {
	case wanted.Set && wanted.Number == 0:
		switch {
		case byAdmin && !super, byAdmin && u.d.AllocSID.Or(0) != userHold:
			return 0, reasonHeldAdmin, nil
		case super && u.client.UID != j.Job.UserID && u.d.AllocSID.Or(0) != userHold:
			return 0, reasonHeldAdmin, nil
		}
		return 0, reasonHeldUser, nil
	case byAdmin && !super:
		return 0, 0, refuseField(errs.Denied, fault.AccessDenied, "priority", "an administrator holds job %d, and only administrators may release it", j.number)
	case wanted.Infinite && !j.held():
		return now, reasonNone, nil
	case wanted.Infinite:
		return usual, reasonNone, nil
	case !super && (wanted.Number > now && !j.held() || wanted.Number > usual):
		return 0, 0, refuseField(errs.Denied, fault.AccessDenied, "priority", "only root and the scheduler's user may raise it")
	}
	return wanted.Number, reasonNone, nil
}

// partition returns the partition to which j is to move, or nil.
func (u *update) partition(j *job) (*model.Partition, error) {
	if u.d.Partition == "" || u.d.Partition == j.Job.Partition {
		return nil, nil
	}
	return u.c.partitionOf(u.d)
}

// timeLimit returns the new time limit of j. If part is not nil, it is the
// partition to which j moves.
func (u *update) timeLimit(j *job, part *model.Partition, super bool) (model.Opt[uint32], error) {
	now, wanted := j.Job.TimeLimit, u.d.TimeLimit
	if wanted == (model.Opt[uint32]{}) || wanted == now {
		if part == nil || super {
			return now, nil
		}
		return timeLimit(now, part)
	}
	longer := wanted.Infinite || now.Set && wanted.Number > now.Number
	switch {
	case wanted.Set && wanted.Number == 0:
		return now, refuseField(errs.Invalid, fault.InvalidTimeLimit, "time_limit", "must be at least 1 minute")
	case j.phase != waiting && longer && !super:
		return now, refuseField(errs.Denied, fault.AccessDenied, "time_limit", "only root and the scheduler's user may extend that of a job that has started")
	case j.phase == running && !j.step.Claim.Adjustable():
		return now, refuseField(errs.Unsupported, fault.NotSupported, "time_limit", "job %d was started by an older release, so its time limit can't be changed", j.number)
	case super:
		return wanted, nil
	}
	for i := range u.c.cfg.Partitions {
		if p := &u.c.cfg.Partitions[i]; p.Name == cmp.Or(u.d.Partition, j.Job.Partition) {
			return timeLimit(wanted, p)
		}
	}
	return wanted, nil
}

// announce makes the step of job j apply the time limit in j's record. It does
// nothing if j has no step yet: the method follow applies the limit once the
// step runs. The caller holds j.edit.
func (c *Controller) announce(j *job) error {
	c.mu.Lock()
	limit, phase := time.Duration(j.Job.TimeLimit.Number)*c.cfg.minute, j.phase
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
	return gone(j.step.Announce())
}

// relimit makes the step of job j apply a time limit that was changed before
// the controller attached to that step.
func (c *Controller) relimit(j *job) {
	j.edit.Lock()
	defer j.edit.Unlock()
	c.mu.Lock()
	adjustable := j.step != nil && j.step.Claim.Adjustable()
	c.mu.Unlock()
	var err error
	if adjustable {
		err = c.announce(j)
	}
	if err != nil || !adjustable {
		c.log.Error("changing time limit failed", "job", j.number, "error", err)
	}
}
