package handlers

import (
	"fmt"
	"net/http"
	"slices"
	"syscall"

	"schedrestd/api"
	"schedrestd/errs"
	"schedrestd/model"
)

// getJobs lists the jobs, one at a time from the controller's answer to the client.
func (h *handler) getJobs(c *call, p *api.ListParams) error {
	body := api.JobsAnswer{Envelope: c.envelope()}
	body.Jobs = func(each func(*api.JobRow) error) error {
		row := api.JobRow{Users: h.Users}
		times, err := h.Controller.Jobs(c.ctx, c.cred, p.Or(everything), func(j *model.Job) error {
			row.Job = j
			return each(&row)
		})
		body.LastUpdate, body.LastBackfill = times.LastUpdate, times.LastBackfill
		return err
	}
	return send(c, http.StatusOK, api.Jobs, &body)
}

// getJob shows one job: several entries when it is an array or heterogeneous, and no task or component
// of it was named.
func (h *handler) getJob(c *call, p *api.JobParams) error {
	jobs, times, err := h.Controller.Job(c.ctx, c.cred, p.Job.JobID, p.Or(everything))
	if err != nil {
		return err
	}
	if jobs, err = partOf(jobs, p.Job); err != nil {
		return err
	}
	body := api.JobsAnswer{LastUpdate: times.LastUpdate, LastBackfill: times.LastBackfill, Envelope: c.envelope()}
	body.Jobs = func(each func(*api.JobRow) error) error {
		for i := range jobs {
			if err := each(&api.JobRow{Job: &jobs[i], Users: h.Users}); err != nil {
				return err
			}
		}
		return nil
	}
	return send(c, http.StatusOK, api.Jobs, &body)
}

// partOf is the task or the component that is named, of jobs, which are all of an array or a heterogeneous
// job. A task without a job of its own is in the one record of all that wait, as "scontrol show job 12_3" has it.
func partOf(jobs []model.Job, named model.JobSelection) ([]model.Job, error) {
	var what string
	var is func(*model.Job) bool
	switch task, offset := named.ArrayTaskID, named.HetOffset; {
	case task.Set:
		what = fmt.Sprintf("job %d with a task %d", named.JobID, task.Number)
		is = func(j *model.Job) bool {
			waiting := api.ArrayTasks(j)
			of := j.ArrayJobID == named.JobID || j.StepID.JobID == named.JobID // Slurm's commands take both
			return of && (j.ArrayTaskID == task || waiting.Has(int(task.Number)))
		}
	case offset.Set:
		what = fmt.Sprintf("job %d with a component %d", named.JobID, offset.Number)
		is = func(j *model.Job) bool { return j.HetJobID == named.JobID && j.HetJobOffset == offset.Number }
	default:
		return jobs, nil
	}
	jobs = slices.DeleteFunc(slices.Clone(jobs), func(j model.Job) bool { return !is(&j) })
	if len(jobs) == 0 {
		missing := errs.New(errs.NotFound, "there is no %s", what)
		missing.Number = invalidJobID
		return nil, missing.WithSource(inPath + "job_id")
	}
	return jobs, nil
}

// invalidJobID is the number that Slurm has for a job that there is not.
const invalidJobID = 2017

// deleteJob cancels a job, or sends it another signal.
func (h *handler) deleteJob(c *call, p *api.KillParams) error {
	results, err := h.Controller.KillEach(c.ctx, c.cred, p.Job, p.Signal.Or(uint16(syscall.SIGKILL)), killFlags(p))
	if err != nil {
		return err
	}
	return send(c, http.StatusOK, api.Killed, &api.KilledAnswer{Results: results, Envelope: c.envelope()})
}

// oldDeleteJob is deleteJob as it was before v0.0.42.
func (h *handler) oldDeleteJob(c *call, p *api.KillParams) error {
	if err := h.Controller.Kill(c.ctx, c.cred, p.Job, p.Signal.Or(uint16(syscall.SIGKILL)), killFlags(p)); err != nil {
		return err
	}
	return send(c, http.StatusOK, api.Empty, &api.EmptyAnswer{Envelope: c.envelope()})
}

// killFlags has the signal go to all of the job, unless the client says what to.
func killFlags(p *api.KillParams) model.Kill {
	if p.Flags == 0 {
		return model.KillFullJob
	}
	return p.Flags
}
