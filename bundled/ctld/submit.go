package ctld

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"schedrestd/bundled/ctld/failpoint"
	"schedrestd/bundled/ctld/journal"
	"schedrestd/bundled/ctld/queue"
	"schedrestd/bundled/ctld/step"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// handleSubmit accepts a batch job, and sends the answer when the job is on
// disk. From then on, the controller neither loses the job nor runs it twice,
// even if the controller crashes. If the machine goes down while the job runs,
// the job ends in state NODE_FAIL.
//
// handleSubmit refuses a job that could never run on this machine. Such a job
// needs more CPUs or memory than the machine has, or a feature that this
// controller lacks (see desc.go).
func (c *Controller) handleSubmit(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.SubmitRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	answer, err := c.Submit(r.Identity, &q.Desc)
	if err != nil {
		return 0, nil, err
	}
	c.log.Info("job accepted", clientAttrs(r, "job", answer.StepID.JobID)...)
	return message.ResponseSubmitBatchJob, &message.SubmitResponse{Submitted: *answer}, nil
}

// Submit checks a job that a client submits, writes it to the journal and
// queues it. If Submit refuses the job, the error says why.
func (c *Controller) Submit(client server.Identity, d *model.JobDesc) (*model.Submitted, error) {
	now := time.Now()
	j, spec, userMessage, err := c.prepareJob(client, d, now)
	if err != nil {
		return nil, err
	}
	held := j.held() // other requests may change this as soon as the job is queued
	if err := c.enqueue(j, spec, now); err != nil {
		return nil, err
	}
	c.wakeScheduler()
	answer := &model.Submitted{StepID: model.StepID{JobID: j.id(), Step: model.Some(model.BatchStep)}, UserMessage: userMessage}
	if held {
		answer.ErrorCode = fault.JobHeld
	}
	return answer, nil
}

// handleEstimate answers when a job would start if it were submitted now, and if each
// job ran until its time limit. It checks the job like handleSubmit, but not the limits
// on all jobs of a user, which ended jobs may give way to.
func (c *Controller) handleEstimate(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.SubmitRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	now := time.Now()
	j, _, userMessage, err := c.prepareJob(r.Identity, &q.Desc, now)
	if err != nil {
		return 0, nil, err
	}
	id, start := c.estimate(j, now)
	return message.ResponseEstimate, &message.EstimateResponse{JobID: model.Some(id), Estimate: model.Estimate{
		Start: start, Nodes: c.cfg.Node, Partition: j.Job.Partition, Processors: j.Job.NumCPUs, UserMessage: userMessage,
	}}, nil
}

// estimate returns the number that j would get, and when j would start, or noEstimate
// if it would be held, or if a job without a time limit may keep it waiting.
func (c *Controller) estimate(j *job, now time.Time) (id uint32, start model.Time) {
	id, f := c.forecast(now)
	if j.held() {
		return id, noEstimate
	}
	if at := f.Start(now, j.begin(), id, j.Need, usualPriority(id, j.Job.Nice)); !at.IsZero() {
		return id, model.At(at)
	}
	return id, noEstimate
}

// forecast returns a copy of the queue, and the number that the next job would get.
func (c *Controller) forecast(now time.Time) (uint32, *queue.Forecast) {
	c.mu.Lock()
	defer c.mu.Unlock()
	limit := func(id uint32) (time.Duration, bool) {
		limit := c.jobs[id].Job.TimeLimit
		d := time.Duration(limit.Number) * c.cfg.minute
		return d, limit.Set && d/c.cfg.minute == time.Duration(limit.Number) // otherwise it is as long as no limit
	}
	end := func(id uint32) (time.Time, bool) {
		if at := c.jobs[id].Job.EndTime; at != 0 {
			return at.Go(), true
		}
		d, limited := limit(id) // the job is being started
		return now.Add(d), limited
	}
	return c.nextID, c.queue.Forecast(end, limit)
}

// noEstimate is the number for a time that is not set.
const noEstimate = model.Time(0xfffffffe)

// enqueue gives j a number, writes j and spec to the journal, and adds j to the
// queue.
func (c *Controller) enqueue(j *job, spec *step.Spec, now time.Time) error {
	j.editMu.Lock() // the first record of j is written below
	defer j.editMu.Unlock()
	if err := c.reserve(j, now); err != nil {
		return err
	}
	// The file names in the spec may contain the job number, so they can be set
	// only now.
	spec.Output, spec.Error, spec.Input = c.files(&j.Job)
	if err := c.commitNew(j, spec, now); err != nil {
		c.mu.Lock()
		delete(c.jobs, j.id())
		c.setLoadLocked(j, load{})
		c.markChangedLocked(now)
		c.mu.Unlock()
		return err
	}
	recordBytes := c.recordSize(j)
	c.mu.Lock()
	c.setLoadLocked(j, c.jobLoad(j, recordBytes))
	j.phase = waiting
	c.queue.Add(j.id(), j.Need, j.earliestLocked(), j.Job.Priority)
	c.markChangedLocked(now)
	c.mu.Unlock()
	return nil
}

// reserve gives j a number and counts j against the limits on the number of
// jobs. The job is in phase starting until its record is on disk: clients see
// the job, but the controller does not start it.
func (c *Controller) reserve(j *job, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.checkRate(j.Job.UserID, now); err != nil {
		return err
	}
	if err := c.reserveLoadLocked(j, load{jobs: 1}); err != nil {
		return err
	}
	if c.nextID >= maxJobID {
		c.nextID = 1
	}
	for c.jobs[c.nextID] != nil {
		c.nextID++
	}
	j.number = c.nextID
	j.home = c.home(j.number, 0)
	j.Job.StepID = model.StepID{JobID: c.nextID}
	if !j.held() {
		j.Job.Priority = usualPriority(c.nextID, j.Job.Nice)
	}
	c.nextID++
	j.phase = starting
	c.jobs[j.id()] = j
	c.markChangedLocked(now)
	return nil
}

// maxJobID limits the job numbers. When the next number would be maxJobID,
// numbering starts again at 1. Higher numbers have other meanings in the
// protocol.
const maxJobID = 0x03ffffff

// usualPriority returns the priority of a job if no client has set one. A
// higher job number gives a lower priority, so that jobs start in the order of
// their numbers. A higher nice value also gives a lower priority. The argument
// nice is the nice value plus NiceOffset. Only a negative nice value gives a
// priority that needs 32 bits: OpenAPI documents of Slurm declare a priority as
// a signed number of 32 bits, and clients generated from these can't read more.
func usualPriority(id, nice uint32) uint32 {
	const first = 0x7fff0000 // with the lowest nice value it does not reach the numbers that have other meanings
	return uint32(max(first-int64(id)+model.NiceOffset-int64(nice), 1))
}

// commitNew writes the new job to the journal in one transaction. The written
// bytes count against the user's limits. So do the bytes that will be written
// when the job starts and when it ends.
func (c *Controller) commitNew(j *job, spec *step.Spec, now time.Time) error {
	record, err := j.entry()
	if err != nil {
		return err
	}
	if isLarge(spec) {
		place, err := c.large.Acquire(c.ctx, j.Job.UserID)
		if err != nil {
			return errs.Wrap(err, errs.Unavailable, "the controller is stopping")
		}
		defer place.Release()
	}
	e, err := entry(j.Job.UserID, key(specPrefix, uint64(j.id())), spec)
	if err != nil {
		return err
	}
	failpoint.Here("accepted")
	entries := []journal.Entry{e, c.nextEntry(), record}
	l := c.jobLoad(j, record.Size())
	l.reservedBytes += totalSize(entries)
	if c.spool != nil {
		l.reservedBytes += record.Size() // its record for accounting
	}
	c.mu.Lock()
	// The rate is checked again, because another request may have been charged
	// meanwhile.
	if err = c.checkRate(j.Job.UserID, now); err == nil {
		err = c.reserveLoadLocked(j, l)
	}
	if err == nil {
		c.charge(j.Job.UserID, l.reservedBytes+record.Size(), now) // the record is written again when the job ends
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if err := c.checkSpace(totalSize(entries) + record.Size()); err != nil {
		return err
	}
	if c.spool == nil {
		err = c.journal.Commit(entries...)
	} else {
		err = c.spool.addWith(j.accounted(), func(spooled journal.Entry) error {
			return c.journal.Commit(append(entries, spooled)...)
		})
	}
	if err != nil {
		return commitError(err, "the job could not be recorded")
	}
	failpoint.Here("recorded")
	return nil
}

// commitError returns the error for a client whose request could not be written
// to the journal. If the change may be on disk nevertheless, the client must
// not get a refusal.
func commitError(err error, format string, args ...any) error {
	e := &errs.Error{Kind: errs.Unavailable, Message: fmt.Sprintf(format, args...), Err: err}
	if errors.Is(err, journal.ErrUncertain) {
		e.Code = errs.OutcomeUnknown
	}
	return e
}

// checkSpace returns an error if the journal's disk has no room for a new job
// of n bytes. Then there is still room to record the ends of all jobs.
func (c *Controller) checkSpace(n int64) error {
	c.mu.Lock()
	reserved := c.usage.total.reservedBytes + c.usage.total.recordBytes
	c.mu.Unlock()
	err := c.journal.CheckSpace(n, reserved)
	full, isFull := errors.AsType[*journal.SpaceError](err)
	if wasFull := c.diskFull.Swap(isFull); isFull && !wasFull {
		c.log.Error("submissions refused: the journal's disk is almost full", "needed_bytes", full.Needed, "free_bytes", full.Free)
	}
	if isFull {
		return errs.Wrap(err, errs.Unavailable, "the job could not be recorded: the controller's disk is almost full")
	}
	return errs.Wrap(err, errs.Unavailable, "the job could not be recorded")
}

// isLarge reports whether encoding spec takes so much memory that only one such
// spec may be encoded at a time.
func isLarge(spec *step.Spec) bool {
	n := len(spec.Script)
	for _, v := range spec.Environment {
		n += len(v)
	}
	return n > 256<<10
}

// recordSize returns the size of j's record in the journal.
func (c *Controller) recordSize(j *job) int64 {
	_, size := c.journal.Stat(key(jobPrefix, uint64(j.number)))
	return size
}

// files returns the paths of the job's output, error and input files.
func (c *Controller) files(m *model.Job) (out, errFile, in step.Raw) {
	out = step.Raw(c.expand(m.StdOut, m))
	if m.StdErr != "" {
		errFile = step.Raw(c.expand(m.StdErr, m))
	}
	if m.StdIn != "" {
		in = step.Raw(c.expand(m.StdIn, m))
	}
	return out, errFile, in
}

// userMessage returns the message for a user whose job was accepted, or "". It names
// the variables in stripped, which were removed from the job's environment, and says
// that no mail is sent if the user has asked for some.
func userMessage(d *model.JobDesc, stripped []string) string {
	var list []string
	if len(stripped) > 0 {
		list = append(list, strings.Join(stripped, " and ")+" removed from the job's environment: jobs must not hold tokens")
	}
	if d.MailType.Or(0) != 0 {
		list = append(list, "mail_type was recorded, but this controller sends no mail")
	}
	return strings.Join(list, "; ")
}
