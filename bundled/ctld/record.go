package ctld

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"schedrestd/bundled/ctld/journal"
	"schedrestd/bundled/ctld/queue"
	"schedrestd/bundled/ctld/step"
	"schedrestd/model"
)

// The journal contains the keys listed below. Numbers in keys are padded so
// that the keys sort in numeric order. In format 2, a job can be requeued, and
// each of its runs has a directory of its own.
//
//	format       version of the values below
//	next         lowest number that the next job may have
//	job/ID       record: the job as clients see it, and its resources
//	spec/ID      step.Spec: what to run; removed when the job has ended
//	spool/SEQ    model.Job: for the accounting daemon
//	aside/SEQ    model.Job: refused by the accounting daemon
const (
	recordFormat = 2
	keyFormat    = "format"
	keyNext      = "next"
	jobPrefix    = "job/"
	specPrefix   = "spec/"
	spoolPrefix  = "spool/"
	asidePrefix  = "aside/"
)

// A phase says what this process is doing with a job.
type phase int

const (
	waiting  phase = iota
	starting       // a step is being started, or being prevented from starting
	running
	ended
)

// A job holds the state of a job in memory. The controller's mutex guards all
// fields except number, editMu and home.
type job struct {
	*record
	number    uint32
	editMu    sync.Mutex // held while the record in the journal is replaced; locked before Controller.mu and Controller.large
	home      string     // directory of the current run's step; changes only between two runs
	phase     phase
	step      *step.Step // nil unless the job runs
	cancelled bool       // cancellation was requested
	load      load       // the load that Controller.usage counts for this job

	failures     int       // consecutive failed attempts to start it
	retryAt      time.Time // not started earlier, because the last attempt failed; zero: it did not fail
	missingSince time.Time // its user could not be found at this time and since; zero: the user exists
}

// A record is a job as it is stored in the journal. A record that c.jobs
// contains must not be modified: update replaces it with a copy.
type record struct {
	Job          model.Job       `json:"job"`
	Need         queue.Resources `json:"need"`
	LimitChanged bool            `json:"limited,omitempty"` // the time limit was changed during this run
	Requeue      requeue         `json:"requeue,omitempty"` // what happens to the job after this run
}

// A requeue says whether and how a job returns to the queue after its current
// run.
type requeue string

const (
	requeueNone      requeue = ""
	requeueFree      requeue = "free"
	requeueHeldUser  requeue = "held-user"
	requeueHeldAdmin requeue = "held-admin"
)

func (j *job) id() uint32          { return j.number }
func (r *record) id() uint32       { return r.Job.StepID.JobID }
func (r *record) held() bool       { return r.Job.Priority == 0 }
func (r *record) key() string      { return key(jobPrefix, uint64(r.id())) }
func (r *record) begin() time.Time { return r.Job.EligibleTime.Go() }

func key(prefix string, n uint64) string { return fmt.Sprintf("%s%012d", prefix, n) }

// earliestLocked returns the time before which the job is not started.
func (j *job) earliestLocked() time.Time {
	if begin := j.begin(); begin.After(j.retryAt) {
		return begin
	}
	return j.retryAt
}

// parseKey returns the number in key k. It also reports whether k consists of
// the prefix and a number.
func parseKey(k, prefix string) (uint64, bool) {
	digits, ok := strings.CutPrefix(k, prefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil
}

// entry returns a journal entry that stores value. The entry's bytes count
// against owner's quota.
func entry(owner uint32, key string, value any) (journal.Entry, error) {
	b, err := json.Marshal(value)
	if err != nil {
		return journal.Entry{}, fmt.Errorf("record %s: %w", key, err)
	}
	return journal.Entry{Key: key, Value: b, Owner: owner}, nil
}

// entry returns the journal entry of job r.
func (r *record) entry() (journal.Entry, error) {
	return entry(r.Job.UserID, key(jobPrefix, uint64(r.Job.StepID.JobID)), r)
}

// accounted returns the job as the accounting daemon records it. As in slurmdbd, a job
// has no end before it has ended. The exit code of a job that was cancelled or requeued,
// or reached its time limit, is 0. The reason is none, because it is that of a job that waits.
// A job without a name is an allocation.
func (r *record) accounted() model.Job {
	m := r.Job
	switch base := m.State.Base(); {
	case m.State&model.JobRequeued != 0, base == model.JobCancelled, base == model.JobTimeout:
		m.ExitCode = 0
	case base == model.JobPending, base == model.JobRunning:
		m.EndTime = 0
	}
	if r.held() {
		m.EligibleTime = 0
	}
	m.StateReason, m.Name = reasonNone, cmp.Or(m.Name, "allocation")
	return m
}

// nextEntry returns the journal entry that stores the next job number. Because
// this number is stored, no job number is reused, even after all jobs have been
// forgotten.
func (c *Controller) nextEntry() journal.Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return journal.Entry{Key: keyNext, Value: strconv.AppendUint(nil, uint64(c.nextID), 10)}
}
