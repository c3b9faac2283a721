package handlers

import (
	"net/http"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// getJobStates returns the states of the jobs that the filters of the request
// select, one at a time. Controllers before Slurm 23.11 don't support this
// request, and the answer to it contains no more of a job than its numbers. In
// these cases getJobStates requests the jobs, and extracts the states from them.
func (h *handler) getJobStates(c *rest.Call, p *api.JobStatesParams) error {
	body := api.JobStatesAnswer{Envelope: c.Envelope()}
	body.Jobs = rest.Paged(c, &body.Envelope, (*api.JobStateRow).Key, func(each func(*api.JobStateRow) error) error {
		row := func(s *model.JobStateEntry) error {
			if !p.HasState(s.State) {
				return nil
			}
			return api.EachState(s, each)
		}
		jobs, ok := p.ByState()
		if !ok {
			return h.statesOfJobs(c, p, row)
		}
		err := h.Controller.JobStates(c.Context(), c.Credential(), jobs, row)
		if errs.KindOf(err) == errs.Unsupported {
			err = h.statesOfJobs(c, p, row)
		}
		return err
	})
	return rest.Send(c, http.StatusOK, api.JobStates, &body)
}

// statesOfJobs requests jobs from the controller, and extracts their states.
func (h *handler) statesOfJobs(c *rest.Call, p *api.JobStatesParams, each func(*model.JobStateEntry) error) error {
	row := api.JobRow{Users: h.Users}
	list := api.JobListParams{Query: model.Query{Flags: model.ShowAll}, JobFilter: p.JobFilter}
	jobs := h.jobSources(c, &list)[0]
	_, err := jobs.Read(c.Context(), model.Query{Undated: c.Waits(), Without: model.JobAllocation}, func(j *model.Job) error {
		if row.Job = j; !p.Match(&row) {
			return nil
		}
		s := model.JobStateEntry{JobID: j.StepID.JobID, ArrayJobID: j.ArrayJobID, HetJobID: j.HetJobID, State: j.State}
		if s.ArrayJobID != 0 {
			s.ArrayTaskID, s.ArrayTasks, s.HetJobID = j.ArrayTaskID, api.ArrayTasks(j), 0
		}
		return each(&s)
	})
	return err
}
