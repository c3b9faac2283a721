package handlers

import (
	"net/http"
	"slices"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// getJobStates returns the states of jobs, one at a time. Controllers before
// Slurm 23.11 don't support this request. In that case getJobStates requests
// the jobs, and extracts the states from them.
func (h *handler) getJobStates(c *rest.Call, p *api.JobStatesParams) error {
	body := api.JobStatesAnswer{Envelope: c.Envelope()}
	body.Jobs = func(each func(*api.JobStateRow) error) error {
		row := func(s *model.JobStateEntry) error { return api.EachState(s, each) }
		err := h.Controller.JobStates(c.Context(), c.Credential(), p.Jobs, row)
		if errs.KindOf(err) == errs.Unsupported {
			err = h.statesOfJobs(c, p.Jobs, row)
		}
		return err
	}
	return rest.Send(c, http.StatusOK, api.JobStates, &body)
}

// statesOfJobs requests jobs from the controller, and extracts their states.
func (h *handler) statesOfJobs(c *rest.Call, selections []model.JobSelection, each func(*model.JobStateEntry) error) error {
	_, err := h.Controller.Jobs(c.Context(), c.Credential(), model.Query{Flags: model.ShowAll}, func(j *model.Job) error {
		s := model.JobStateEntry{JobID: j.StepID.JobID, ArrayJobID: j.ArrayJobID, HetJobID: j.HetJobID, State: j.State}
		if s.ArrayJobID != 0 {
			s.ArrayTaskID, s.ArrayTasks, s.HetJobID = j.ArrayTaskID, api.ArrayTasks(j), 0
		}
		if len(selections) > 0 && !slices.ContainsFunc(selections, func(one model.JobSelection) bool { return one.Has(&s) }) {
			return nil
		}
		return each(&s)
	})
	return err
}
