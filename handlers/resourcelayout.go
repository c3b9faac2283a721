package handlers

import (
	"net/http"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
)

// getResources shows the resources of a job on each of its nodes.
func (h *handler) getResources(c *rest.Call, p *api.ResourcesParams) error {
	if p.Job.ArrayTaskID.Set || p.Job.HetOffset.Set {
		return errs.New(errs.Invalid, "this operation shows the resources of a single job").WithSource(rest.InPath + "job_id").
			WithHint("name a task or a component by its own job number")
	}
	nodes, err := h.Controller.ResourceLayout(c.Context(), c.Credential(), p.Job.JobID)
	if err != nil {
		return annotateNamed(err, "job", c.Param("job_id"), rest.InPath+"job_id")
	}
	return rest.Send(c, http.StatusOK, api.Resources, &api.ResourcesAnswer{Nodes: nodes, Envelope: c.Envelope()})
}
