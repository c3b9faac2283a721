package handlers

import (
	"net/http"
	"slices"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

func (h *handler) getClusters(c *rest.Call, _ *api.ClustersParams) error {
	return h.sendClusters(c, model.ClusterFilter{}, "")
}

func (h *handler) getCluster(c *rest.Call, p *api.ClusterParams) error {
	if len(p.Names) > 0 && !slices.Contains(p.Names, p.Name) {
		return errs.New(errs.NotFound, "the parameter cluster does not name cluster %q", p.Name)
	}
	p.Names = []string{p.Name}
	return h.sendClusters(c, p.ClusterFilter, p.Name)
}

// sendClusters answers with the clusters that the filter selects. If name is
// set, it sends only the cluster with this name.
func (h *handler) sendClusters(c *rest.Call, filter model.ClusterFilter, name string) error {
	r, err := h.records(c)
	if err != nil {
		return err
	}
	list := recordsOf[model.Cluster](h, c, filter)
	if name != "" {
		cluster, err := findFirst("cluster", name, list, func(c *model.Cluster) bool { return c.Name == name })
		if err != nil {
			return err
		}
		list = func(each func(*model.Cluster) error) error { return each(cluster) }
	}
	body := api.ClustersAnswer{Envelope: c.Envelope()}
	body.Clusters = func(each func(*api.ClusterRow) error) error {
		row := api.ClusterRow{Records: r}
		return list(func(cluster *model.Cluster) error {
			row.Cluster = cluster
			return each(&row)
		})
	}
	return rest.Send(c, http.StatusOK, api.Clusters, &body)
}
