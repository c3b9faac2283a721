package handlers

import (
	"net/http"
	"strconv"
	"strings"
	"syscall"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/errs"
	"schedrestd/model"
)

// getJobs lists the jobs, one at a time from the controller's answer to the client.
func (h *handler) getJobs(c *call) error {
	body := api.JobsAnswer{Envelope: c.envelope()}
	body.Jobs = func(each func(*api.JobRow) error) error {
		row := api.JobRow{Users: h.Users}
		times, err := h.Controller.Jobs(c.ctx, c.cred, everything, func(j *model.Job) error {
			row.Job = j
			return each(&row)
		})
		body.LastUpdate, body.LastBackfill = times.LastUpdate, times.LastBackfill
		return err
	}
	return send(c, http.StatusOK, api.Jobs, &body)
}

// getJob shows one job: several entries when it is an array or heterogeneous.
func (h *handler) getJob(c *call) error {
	id, err := strconv.ParseUint(c.params["job_id"], 10, 32)
	if err != nil {
		return noSuchJob(c)
	}
	jobs, times, err := h.Controller.Job(c.ctx, c.cred, uint32(id), model.Query{Flags: model.ShowDetail})
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

// deleteJob cancels a job.
func (h *handler) deleteJob(c *call) error {
	id := c.params["job_id"]
	if strings.Trim(id, "0123456789_+[],-") != "" || id[0] < '0' || id[0] > '9' {
		return noSuchJob(c)
	}
	if err := h.Controller.Kill(c.ctx, c.cred, id, uint16(syscall.SIGKILL), 0); err != nil {
		return err
	}
	return send(c, http.StatusOK, api.Empty, &api.EmptyAnswer{Envelope: c.envelope()})
}

// noSuchJob is for what can't be a job's number. The credential has not been shown to a daemon
// yet, and only a good one is told anything else than that it is not.
func noSuchJob(c *call) error {
	if err := c.h.Controller.Vouch(c.ctx, c.cred); err != nil {
		return err
	}
	return errs.New(errs.NotFound, "there is no job %q", schema.Shorten(c.params["job_id"]))
}
