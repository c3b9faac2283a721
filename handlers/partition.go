package handlers

import (
	"net/http"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/model"
)

// getPartitions returns the partitions, one at a time.
func (h *handler) getPartitions(c *rest.Call, p *api.ListParams) error {
	body := api.PartitionsAnswer{Envelope: c.Envelope()}
	body.Partitions = func(each func(*model.Partition) error) (err error) {
		body.LastUpdate, err = h.Controller.Partitions(c.Context(), c.Credential(), p.Query, each)
		return err
	}
	return rest.Send(c, http.StatusOK, api.Partitions, &body)
}

// getPartition returns one partition.
func (h *handler) getPartition(c *rest.Call, p *api.PartitionParams) error {
	partition, lastUpdate, err := h.Controller.Partition(c.Context(), c.Credential(), p.Name, p.Or(model.ShowAll))
	if err != nil {
		return err
	}
	return rest.Send(c, http.StatusOK, api.Partitions, &api.PartitionsAnswer{
		Partitions: schema.One(partition),
		LastUpdate: lastUpdate,
		Envelope:   c.Envelope(),
	})
}
