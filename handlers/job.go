package handlers

import (
	"errors"
	"fmt"
	"net/http"
	"syscall"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// getJobs returns all jobs. It passes them on one at a time, while it reads the
// controller's answer.
func (h *handler) getJobs(c *rest.Call, p *api.ListParams) error {
	body := api.JobsAnswer{Envelope: c.Envelope()}
	body.Jobs = func(each func(*api.JobRow) error) error {
		row := api.JobRow{Users: h.Users}
		times, err := h.Controller.Jobs(c.Context(), c.Credential(), p.Or(defaultShowFlags), func(j *model.Job) error {
			row.Job = j
			return each(&row)
		})
		body.LastUpdate, body.LastBackfill = times.LastUpdate, times.LastBackfill
		return err
	}
	return rest.Send(c, http.StatusOK, api.Jobs, &body)
}

// getJob returns one job. An array or a heterogeneous job has several records,
// unless the request selects a task or component. The records are passed on one
// at a time, because an array may have a million of them.
func (h *handler) getJob(c *rest.Call, p *api.JobParams) error {
	name, matches := partOf(p.Job)
	body := api.JobsAnswer{Envelope: c.Envelope()}
	body.Jobs = func(each func(*api.JobRow) error) error {
		row := api.JobRow{Users: h.Users}
		times, err := h.Controller.Job(c.Context(), c.Credential(), p.Job.JobID, p.Or(defaultShowFlags), func(j *model.Job) error {
			if !matches(j) {
				return nil
			}
			row.Job = j
			return each(&row)
		})
		body.LastUpdate, body.LastBackfill = times.LastUpdate, times.LastBackfill
		if err == nil && row.Job == nil {
			missing := errs.New(errs.NotFound, "there is no %s", name)
			missing.Number = slurmerror.InvalidJobID
			err = missing.WithSource(rest.InPath + "job_id")
		}
		return err
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

// deleteJob cancels a job, or sends it the signal that the request contains.
func (h *handler) deleteJob(c *rest.Call, p *api.KillParams) error {
	results, err := rest.MakeChange(c, p.Job, func() ([]model.KillResult, error) {
		list, err := h.Controller.KillEach(c.Context(), c.Credential(), p.Job, p.Signal.Or(uint16(syscall.SIGKILL)), killFlags(p))
		gone, ok := goneJob(c, err)
		if ok && len(list) == 0 {
			list = []model.KillResult{{Code: uint32(gone.Number), Reason: h.ErrorText(gone.Number), Message: gone.Message, ID: api.SelectedJob(p.Job)}}
		}
		if ok {
			err = nil
		}
		return list, err
	}, func(list []model.KillResult) rest.Result {
		if len(list) == 0 { // without VERBOSE the list has only failures
			return rest.Result{Objects: p.Job}
		}
		return signalResult(list)
	})
	if err != nil {
		return err
	}
	return rest.Send(c, http.StatusOK, api.Killed, &api.KilledAnswer{Results: results, Envelope: c.Envelope()})
}

// oldDeleteJob implements deleteJob for versions before v0.0.42.
func (h *handler) oldDeleteJob(c *rest.Call, p *api.KillParams) error {
	var gone *errs.Error
	_, err := rest.MakeChange(c, p.Job, func() (string, error) {
		err := h.Controller.Kill(c.Context(), c.Credential(), p.Job, p.Signal.Or(uint16(syscall.SIGKILL)), killFlags(p))
		var ok bool
		if gone, ok = goneJob(c, err); ok {
			c.Warn(rest.InPath+"job_id", "%s", gone.Message)
			err = nil
		}
		return p.Job, err
	}, func(job string) rest.Result {
		if gone != nil {
			return rest.Result{Objects: job, Number: uint32(gone.Number), Code: "partial"}
		}
		return rest.Result{Objects: job}
	})
	if err != nil {
		return err
	}
	return rest.Send(c, http.StatusOK, api.Empty, &api.EmptyAnswer{Envelope: c.Envelope()})
}

// killFlags returns the flags for the signal. By default, all processes of the
// job get the signal.
func killFlags(p *api.KillParams) model.Kill {
	if p.Flags == 0 {
		return model.KillFullJob
	}
	return p.Flags
}

// goneJob returns err if its reason is that the job to cancel has ended or is
// unknown, and if the client may expect a success.
func goneJob(c *rest.Call, err error) (e *errs.Error, ok bool) {
	e, ok = errors.AsType[*errs.Error](err)
	if !ok || e.Number != slurmerror.InvalidJobID && e.Number != slurmerror.AlreadyDone || !c.Lenient(api.GoneJob) {
		return nil, false
	}
	return e, true
}
