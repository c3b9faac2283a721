package handlers

import (
	"net/http"
	"strings"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/model"
)

// getInstances lists the cloud instances of nodes.
func (h *handler) getInstances(c *rest.Call, p *api.InstancesParams) error {
	var err error
	if p.Clusters, err = h.spellClusters(c, p.Clusters); err != nil {
		return err
	}
	body := api.InstancesAnswer{Envelope: c.Envelope()}
	key := func(i *model.Instance) string {
		return strings.Join([]string{i.Cluster, i.Node, numberKey(uint64(i.TimeStart)), i.InstanceID}, "/")
	}
	body.Instances = rest.Paged(c, &body.Envelope, key, recordsOf[model.Instance](h, c, p.InstanceFilter))
	return rest.Send(c, http.StatusOK, api.Instances, &body)
}
