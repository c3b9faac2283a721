package handlers

import (
	"net/http"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/model"
)

// getInstances lists the cloud instances of nodes.
func (h *handler) getInstances(c *rest.Call, p *api.InstancesParams) error {
	list := recordsOf[model.Instance](h, c, p.InstanceFilter)
	return rest.Send(c, http.StatusOK, api.Instances, &api.InstancesAnswer{Instances: list, Envelope: c.Envelope()})
}
