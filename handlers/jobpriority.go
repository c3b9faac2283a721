package handlers

import (
	"net/http"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/model"
)

// getJobPriorities returns the priorities of waiting jobs, one at a time. The
// controller has no filters, so the gateway applies them.
func (h *handler) getJobPriorities(c *rest.Call, p *api.JobPrioritiesParams) error {
	body := api.JobPrioritiesAnswer{Envelope: c.Envelope()}
	body.Priorities = func(each func(*api.JobPriorityRow) error) error {
		row := api.JobPriorityRow{}
		return h.Controller.Priorities(c.Context(), c.Credential(), func(j *model.JobPriority) error {
			if row.JobPriority, row.User = j, h.Users.User(j.UserID); !p.Match(&row) {
				return nil
			}
			return each(&row)
		})
	}
	return rest.Send(c, http.StatusOK, api.JobPriorities, &body)
}
