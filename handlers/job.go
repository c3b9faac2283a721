package handlers

import (
	"net/http"
	"syscall"

	"schedrestd/api"
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

// getJob shows one job: several entries when it is an array or heterogeneous.
func (h *handler) getJob(c *call, p *api.JobParams) error {
	jobs, times, err := h.Controller.Job(c.ctx, c.cred, p.ID, p.Or(model.ShowDetail))
	if err != nil {
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
