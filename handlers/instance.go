package handlers

import (
	"net/http"

	"schedrestd/api"
	"schedrestd/model"
)

// getInstances lists the cloud instances of nodes.
func (h *handler) getInstances(c *call, p *api.InstancesParams) error {
	return send(c, http.StatusOK, api.Instances, &api.InstancesAnswer{Instances: recordsOf[model.Instance](h, c, p.InstanceFilter), Envelope: c.envelope()})
}
