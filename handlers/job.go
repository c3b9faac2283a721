package handlers

import (
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// getJobs returns the jobs that the filters of the request select. It passes
// them on one at a time, while it reads the controller's answer.
func (h *handler) getJobs(c *rest.Call, p *api.JobListParams) error {
	match := func(j *model.Job) bool { return p.Match(&api.JobRow{Job: j, Users: h.Users}) }
	list := h.jobList(c, p.Query, p.Explain, "", match, h.jobSources(c, p)...)
	if done, err := rest.Watch(c, list); done || err != nil {
		return err
	}
	facts, err := h.explain(c, p.Explain, list.Query, match, list.Sources...)
	if err != nil {
		return err
	}
	body := api.JobsAnswer{Envelope: c.Envelope()}
	jobs := rest.Paged(c, &body.Envelope, jobKey, list.Records(c, func(t model.ListTimes) { body.LastUpdate, body.LastBackfill = t.LastUpdate, t.LastBackfill }))
	body.Jobs = rowsOf(jobs, func(j *model.Job) api.JobRow { return api.JobRow{Job: j, Users: h.Users, Explain: facts} })
	return rest.Send(c, http.StatusOK, api.Jobs, &body)
}

func jobKey(j *model.Job) string { return numberKey(uint64(j.StepID.JobID)) }

// jobQuery returns q with the default flags, and without the parts of jobs that
// the answer does not show.
func jobQuery(c *rest.Call, q model.Query) model.Query {
	q.Flags, q.Without = jobFlagsOf(c, q), model.JobNodeIndexes
	q.Undated = c.Waits()
	if !c.Shows("jobs", "job_resources") {
		q.Without |= model.JobAllocation
	}
	return q
}

// jobFlagsOf returns the flags with which the controller is asked for the jobs of
// q. Answers of old versions show all flags of the request (show_flags), as
// controllers before 24.11 send them back.
func jobFlagsOf(c *rest.Call, q model.Query) model.Show {
	flags := q.Or(defaultShowFlags).Flags
	if c.View().Version < api.V43 {
		return flags
	}
	return flags & jobFlags
}

// userID returns the uid of a user who is given by name or uid. It is not set if
// the name can't be looked up.
func (h *handler) userID(c *rest.Call, user string) model.Opt[uint32] {
	if n, err := strconv.ParseUint(user, 10, 32); err == nil {
		return model.Some(uint32(n))
	}
	if h.Resolver == nil {
		return model.Opt[uint32]{}
	}
	id, err := h.Resolver.UserID(c.Context(), user)
	if err != nil {
		return model.Opt[uint32]{}
	}
	return model.Some(id)
}

// getJob returns one job. An array or a heterogeneous job has several records,
// unless the request selects a task or component. The records are passed on one
// at a time, because an array may have a million of them.
func (h *handler) getJob(c *rest.Call, p *api.JobParams) error {
	name, matches := partOf(p.Job)
	list := h.recordsOfJob(c, p, matches)
	if _, err := rest.Watch(c, list); err != nil {
		return err
	}
	var recorded []model.Job
	if c.Until() != "" {
		var known bool
		var err error
		if recorded, known, err = h.awaitJob(c, p, matches); err != nil {
			return err
		}
		if len(recorded) > 0 && !known {
			return h.sendRecorded(c, recorded)
		}
	}
	facts, err := h.explain(c, p.Explain, list.Query, matches, list.Sources...)
	if err != nil {
		return err
	}
	body := api.JobsAnswer{Envelope: c.Envelope()}
	body.Jobs = func(each func(*api.JobRow) error) error {
		row := api.JobRow{Users: h.Users, Explain: facts}
		times, err := h.Controller.Job(c.Context(), c.Credential(), p.Job.JobID, jobQuery(c, p.Query), func(j *model.Job) error {
			if !matches(j) {
				return nil
			}
			row.Job = j
			return each(&row)
		})
		body.LastUpdate, body.LastBackfill = times.LastUpdate, times.LastBackfill
		if err == nil && row.Job == nil {
			err = errs.New(errs.NotFound, "there is no %s", name).WithNumber(slurmerror.InvalidJobID).WithSource(rest.InPath + "job_id")
		}
		if err != nil {
			return err
		}
		return h.jobRows(recorded)(each)
	}
	return rest.Send(c, http.StatusOK, api.Jobs, &body)
}

// partOf returns the name by which errors call the job, task or component that
// a request selects. It also returns a function that reports whether a record
// belongs to this selection. All pending tasks of an array share one record.
// This record matches each of these tasks, as in the output of "scontrol show
// job 12_3".
func partOf(job model.JobSelection) (name string, matches func(*model.Job) bool) {
	switch task, offset := job.ArrayTaskID, job.HetOffset; {
	case task.Set:
		name = fmt.Sprintf("job %d with a task %d", job.JobID, task.Number)
		matches = func(j *model.Job) bool {
			pending := api.ArrayTasks(j)
			sameArray := j.ArrayJobID == job.JobID || j.StepID.JobID == job.JobID // Slurm's commands accept either number
			return sameArray && (j.ArrayTaskID == task || pending.Has(int(task.Number)))
		}
	case offset.Set:
		name = fmt.Sprintf("job %d with a component %d", job.JobID, offset.Number)
		matches = func(j *model.Job) bool { return j.HetJobID == job.JobID && j.HetJobOffset == offset.Number }
	default:
		name, matches = fmt.Sprintf("job %d", job.JobID), func(*model.Job) bool { return true }
	}
	return name, matches
}

// postJob changes a job. If any part of the body is invalid, or if the body
// sets no field, it changes nothing.
func (h *handler) postJob(c *rest.Call, p *api.NamedJobParams) error {
	desc, err := rest.ReadBody(c, api.JobUpdate)
	if err != nil {
		return err
	}
	if desc.JobID.Set && !strings.HasPrefix(p.Job+"_", strconv.FormatUint(uint64(desc.JobID.Number), 10)+"_") {
		return errs.New(errs.Invalid, "the path names job %s", p.Job).WithSource("#/job_id")
	}
	desc.JobID = model.Opt[uint32]{}
	if reflect.DeepEqual(*desc, model.JobDesc{}) {
		if err := noChange(c, "job", p.Job, "#"); err != nil {
			return err
		}
	}
	if err := checkSpank(desc, "#/"); err != nil {
		return err
	}
	if err := h.resolve(c, desc, "#/"); err != nil {
		return err
	}
	dropTokens(c, desc, "#/")
	results, err := rest.MakeChange(c, p.Job, func() ([]model.TaskResult, error) {
		var before *api.JobRow
		if setFields(desc) > 1 {
			before, _ = h.oneJob(c, p.Job) // without it, a refusal does not say what was changed
		}
		results, err := h.Controller.UpdateJob(c.Context(), c.Credential(), p.Job, desc)
		read := func() (*api.JobRow, error) { return h.oneJob(c, p.Job) }
		return results, explainPartly(c, err, api.Job, before, read, "", shownJobFields)
	}, func(list []model.TaskResult) rest.Result { return tasksResult(p.Job, list) })
	switch {
	case errs.KindOf(err) == errs.Denied && !desc.UserID.Set, errs.KindOf(err) == errs.NotFound:
		return annotateNamed(err, "job", p.Job, rest.InPath+"job_id") // the error is about the existing job
	case err != nil:
		return annotateJob(c, err, "#/")
	}
	warnOfTasks(c, results)
	return rest.Send(c, http.StatusOK, api.Updated, &api.UpdatedAnswer{Job: p.Job, Results: results, Envelope: c.Envelope()})
}

// tasksResult returns the Result of a change to a job. The change may have
// failed for some of the job's tasks.
func tasksResult(job string, list []model.TaskResult) rest.Result {
	r := rest.Result{Objects: job}
	for _, t := range list {
		if t.Code == 0 {
			continue
		}
		r.Objects += fmt.Sprintf(" %s:%d", t.Tasks, t.Code)
		if r.Number == 0 {
			r.Number, r.Code = t.Code, "partial"
		}
	}
	return r
}

// warnOfTasks adds a warning for each task that was not changed.
func warnOfTasks(c *rest.Call, list []model.TaskResult) {
	for _, t := range list {
		if t.Code != 0 {
			c.Warn(rest.InPath+"job_id", "%s was not changed: %s", t.Tasks, t.Reason)
		}
	}
}
