package cli

import (
	"context"
	"iter"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"schedrestd/cli/rest"
	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
)

// listSchedule is the schedule of requests for a list of named jobs.
var listSchedule = schedule{time.Second, 5 * time.Second, retryTimeout}

// maxSingle is the number of jobs that are requested one by one, each on its own
// connection, if the server can wait. More jobs are requested as lists.
const maxSingle = 8

// An await describes what a command waits for.
type await struct {
	until  string           // rest.UntilEnded or rest.UntilRunning
	report func([]rest.Job) // receives the jobs of each answer; nil if only the last state matters
}

// request returns a request for the jobs. They have the fields that report needs.
func (a *await) request() *rest.List {
	fields := []string{jobKey, "job_state,exit_code"}
	if a.report != nil {
		fields = append(fields, summaryFields, "name", rest.ElapsedFields)
	}
	return &rest.List{Fields: uniqueFields(fields)}
}

// done reports whether the jobs, which have the same id, have reached the state.
func (a *await) done(jobs []rest.Job) bool {
	if a.until == rest.UntilRunning && slices.ContainsFunc(jobs, func(j rest.Job) bool { return j.HasStarted() }) {
		return true
	}
	return !slices.ContainsFunc(jobs, func(j rest.Job) bool { return j.Active() })
}

// tell passes the jobs to report.
func (a *await) tell(jobs []rest.Job) {
	if a.report != nil {
		a.report(jobs)
	}
}

// awaitJob waits until the job with this id has reached the state. If the id is
// that of an array, awaitJob waits for all tasks. It returns the jobs of the last
// answer. Several calls may share places, which limits their concurrent requests.
func (c *connection) awaitJob(ctx context.Context, id string, a *await, places chan struct{}) (jobs []rest.Job, err error) {
	l := a.request()
	if a.report == nil {
		l.Until = a.until
	}
	err = c.repeat(ctx, l, jobSchedule, func() (rest.Meta, bool, error) {
		places <- struct{}{}
		answer, m, err := c.PollJob(ctx, id, l)
		<-places
		if err != nil {
			return m, false, err
		}
		if !m.Unchanged {
			jobs = answer
		}
		a.tell(jobs)
		return m, a.done(jobs), nil
	})
	return jobs, wrapAwaitError(id, err)
}

// wrapAwaitError says that waiting for a job has failed with err.
func wrapAwaitError(id string, err error) error {
	if err == nil {
		return nil
	}
	return &errs.Error{Kind: errs.KindOf(err), Message: "wait for job " + printable.Text(id), Err: err, Hint: errs.HintOf(err)}
}

// An awaited is the result of waiting for the job with an id.
type awaited struct {
	jobs []rest.Job
	err  error
}

// awaitJobs waits until all jobs with the given ids have reached the state. If
// one of them has failed, it returns an ExitError with the exit status of the
// first of these.
func (c *connection) awaitJobs(ctx context.Context, ids []string, a *await) error {
	results := c.eachAwaited(ctx, ids, a)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var err error
	for i := range results {
		err = joinErrors(err, results[i].err)
	}
	if err != nil {
		return err
	}
	for i := range results {
		if status := exitStatus(results[i].jobs); status != 0 {
			return &ExitError{Status: status}
		}
	}
	return nil
}

// exitStatus returns the exit status of the first job whose exit status is not
// 0. If there is no such job, or one of the jobs has not ended, it returns 0.
func exitStatus(jobs []rest.Job) (status int) {
	for i := range jobs {
		if jobs[i].Active() {
			return 0
		}
		if status == 0 {
			status = jobs[i].ExitStatus()
		}
	}
	return status
}

// eachAwaited waits for jobs. It returns a result for each of the ids.
func (c *connection) eachAwaited(ctx context.Context, ids []string, a *await) []awaited {
	results := make([]awaited, len(ids))
	var wg sync.WaitGroup
	defer wg.Wait()
	if len(ids) > maxSingle && c.canWait(ctx, ids) {
		for first, rest := range splitIDs(ids) {
			wg.Go(func() { c.awaitList(ctx, rest, results[first:], a) })
		}
		return results
	}
	places := make(chan struct{}, maxSingle)
	for i, id := range ids {
		wg.Go(func() { results[i].jobs, results[i].err = c.awaitJob(ctx, id, a, places) })
	}
	return results
}

// canWait reports whether the server can wait for a change. It requests one of the
// jobs to find this out, because a server that can't may send long lists.
func (c *connection) canWait(ctx context.Context, ids []string) (can bool) {
	for _, id := range ids {
		l := (&await{}).request()
		err := c.repeat(ctx, l, jobSchedule, func() (rest.Meta, bool, error) {
			_, m, err := c.PollJob(ctx, id, l)
			can = m.Wait > 0
			return m, true, err
		})
		if errs.KindOf(err) != errs.NotFound {
			break
		}
	}
	return can
}

// maxIDs limits the length of a list of ids in a URL, in bytes.
const maxIDs = 4000

// splitIDs splits ids into lists that fit into URLs. It returns each list and the
// index of its first element.
func splitIDs(ids []string) iter.Seq2[int, []string] {
	return func(yield func(int, []string) bool) {
		for first := 0; first < len(ids); {
			n, length := 0, 0
			for n < len(ids)-first && length < maxIDs {
				length += len(ids[first+n]) + 1
				n++
			}
			if !yield(first, ids[first:first+n]) {
				return
			}
			first += n
		}
	}
}

// awaitList waits until all jobs with the given ids have reached the state, and
// stores a result for each of the ids. The server must be able to wait. Each
// answer has all jobs that are requested, so awaitList requests fewer when half of
// them have reached the state.
func (c *connection) awaitList(ctx context.Context, ids []string, results []awaited, a *await) {
	l := a.request()
	l.Fields = append(l.Fields, "het_job_id")
	settled, left, requested := make([]bool, len(ids)), len(ids), 0
	err := c.repeat(ctx, l, listSchedule, func() (rest.Meta, bool, error) {
		if left <= requested/2 || requested == 0 {
			var unsettled []string
			for i, id := range ids {
				if !settled[i] {
					unsettled = append(unsettled, id)
				}
			}
			requested, l.Filters = left, url.Values{"job_id": {strings.Join(unsettled, ",")}}
		}
		found := make([][]rest.Job, len(ids))
		m, err := c.Jobs(ctx, l, func(j *rest.Job) error {
			for i, id := range ids {
				if j.Selects(id) {
					found[i] = append(found[i], *j)
				}
			}
			return nil
		})
		if err != nil || m.Unchanged {
			return m, false, err
		}
		for i, id := range ids {
			if settled[i] {
				continue
			}
			r := awaited{jobs: found[i]}
			if r.jobs == nil { // the controller no longer has it
				r.jobs, r.err = c.Job(ctx, id)
			}
			if r.err != nil && errs.KindOf(r.err) != errs.NotFound {
				return m, false, r.err
			}
			a.tell(r.jobs)
			if r.err != nil || a.done(r.jobs) {
				r.err = wrapAwaitError(id, r.err)
				settled[i], left = true, left-1
			}
			results[i] = r
		}
		return m, left == 0, nil
	})
	for i := range ids {
		if err != nil && !settled[i] {
			results[i].err = wrapAwaitError(ids[i], err)
		}
	}
}
