package ctld

import (
	"context"
	"strings"
	"time"

	"schedrestd/ctld/failpoint"
	"schedrestd/ctld/journal"
	"schedrestd/ctld/step"
	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// handleSubmit takes a batch job. It is answered when the job is on the disk: from then on it
// runs exactly once, whatever becomes of this process, or ends as NODE_FAIL when the
// machine goes down under it.
//
// A job that could never run here is refused with the reason in words: more cpus or memory than
// the machine has, a feature this controller does not have (desc.go lists them).
func (c *Controller) handleSubmit(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.SubmitRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	answer, err := c.Submit(r.Identity, &q.Desc)
	if err != nil {
		return 0, nil, err
	}
	c.log.Info("job accepted", asker(r, "job", answer.StepID.JobID)...)
	return message.ResponseSubmitBatchJob, &message.SubmitResponse{Submitted: *answer}, nil
}

// Submit accepts a job that who hands in, durably, or says why not.
func (c *Controller) Submit(who server.Identity, d *model.JobDesc) (*model.Submitted, error) {
	now := time.Now()
	j, spec, said, err := c.accept(who, d, now)
	if err != nil {
		return nil, err
	}
	if err := c.enqueue(j, spec, now); err != nil {
		return nil, err
	}
	c.poke()
	return &model.Submitted{StepID: model.StepID{JobID: j.id(), Step: model.Some(batchStep)}, UserMessage: said}, nil
}

// enqueue gives j a number, records it with what is to be run, and puts it into the queue.
func (c *Controller) enqueue(j *job, spec *step.Spec, now time.Time) error {
	if err := c.reserve(j, now); err != nil {
		return err
	}
	// The spec has the number in its file names, so it could not be finished before.
	spec.Output, spec.Error, spec.Input = c.files(&j.Job)
	if err := c.commitNew(j, spec, now); err != nil {
		c.mu.Lock()
		delete(c.jobs, j.id())
		c.count(j, load{})
		c.change(now)
		c.mu.Unlock()
		return err
	}
	texts := c.texts(j)
	c.mu.Lock()
	c.count(j, c.kept(j, texts))
	j.phase = waiting
	c.queue.Add(j.id(), j.Need, j.begin(), j.held())
	c.change(now)
	c.mu.Unlock()
	return nil
}

// batchStep is Slurm's number for the step that is the batch script.
const batchStep uint32 = 0xfffffffb

// reserve gives j its number and its place among the jobs. Until its record is on the disk
// it is in phase starting: it is seen, but nobody starts it.
func (c *Controller) reserve(j *job, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.slow(j.Job.UserID, now); err != nil {
		return err
	}
	if err := c.take(j, load{jobs: 1}); err != nil {
		return err
	}
	if c.next >= maxJobID {
		c.next = 1
	}
	for c.jobs[c.next] != nil {
		c.next++
	}
	j.number = c.next
	j.Job.StepID = model.StepID{JobID: c.next}
	j.Job.Priority = priority(j.Job.Priority, c.next)
	c.next++
	j.phase = starting
	c.jobs[j.id()] = j
	c.change(now)
	return nil
}

// maxJobID is where numbers begin anew; what is beyond has other meanings on the wire.
const maxJobID = 0x03ffffff

// priority falls with the number, as the order of starting does; 0 is held.
func priority(wanted, id uint32) uint32 {
	if wanted == 0 {
		return 0
	}
	return 0xffff0000 - id
}

// commitNew makes the new job durable, all of it at once. What is then written is what counts as the user's, with what the
// job's end will add.
func (c *Controller) commitNew(j *job, spec *step.Spec, now time.Time) error {
	record, err := j.entry()
	if err != nil {
		return err
	}
	if isLarge(spec) {
		c.large.Lock()
		defer c.large.Unlock()
	}
	e, err := entry(j.Job.UserID, key(specPrefix, uint64(j.id())), spec)
	if err != nil {
		return err
	}
	failpoint.Here("accepted")
	entries := []journal.Entry{e, c.nextEntry(), record}
	l := c.kept(j, record.Size())
	l.due += sizes(entries)
	c.mu.Lock()
	if err = c.slow(j.Job.UserID, now); err == nil { // again: others were charged meanwhile
		err = c.take(j, l)
	}
	if err == nil {
		c.charge(j.Job.UserID, l.due+record.Size(), now) // the record is written again when the job ends
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if err := c.journal.Commit(entries...); err != nil {
		return errs.Wrap(err, errs.Unavailable, "the job could not be recorded")
	}
	failpoint.Here("recorded")
	return nil
}

// isLarge reports whether encoding spec takes so much memory that it is done for one job at a time.
func isLarge(spec *step.Spec) bool {
	n := len(spec.Script)
	for _, v := range spec.Environment {
		n += len(v)
	}
	return n > 256<<10
}

// texts returns how many bytes of the journal the record of j takes.
func (c *Controller) texts(j *job) int64 {
	_, size := c.journal.Stored(key(jobPrefix, uint64(j.number)))
	return size
}

// files is where the job's output, errors and input are.
func (c *Controller) files(m *model.Job) (out, fail, in step.Raw) {
	out = step.Raw(c.expand(m.StdOut, m))
	if m.StdErr != "" {
		fail = step.Raw(c.expand(m.StdErr, m))
	}
	if m.StdIn != "" {
		in = step.Raw(c.expand(m.StdIn, m))
	}
	return out, fail, in
}

// said is what the user is told of an accepted job.
func said(stripped []string) string {
	if len(stripped) == 0 {
		return ""
	}
	return strings.Join(stripped, " and ") + " removed from the job's environment: jobs must not hold tokens"
}
