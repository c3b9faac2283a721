package handlers

import (
	"net/http"

	"schedrestd/api"
	"schedrestd/model"
)

// getInstances lists the cloud instances of nodes.
func (h *handler) getInstances(c *call, p *api.InstancesParams) error {
	list := recordsOf[model.Instance](h, c, p.InstanceFilter)
	return send(c, http.StatusOK, api.Instances, &api.InstancesAnswer{Instances: list, Envelope: c.envelope()})
}
