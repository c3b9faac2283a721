package handlers

import (
	"net/http"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

func (h *handler) getClusters(c *rest.Call, p *api.ClustersParams) error {
	return h.sendClusters(c, p.ClusterFilter, "")
}

func (h *handler) getCluster(c *rest.Call, p *api.ClusterParams) error {
	if len(p.Names) > 0 && !model.HasName(p.Names, p.Name) {
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
		cluster, err := findNamed("cluster", name, list, clusterRecordName)
		if err != nil {
			return err
		}
		list = schema.One(cluster)
	}
	body := api.ClustersAnswer{Envelope: c.Envelope()}
	page := rest.Paged(c, &body.Envelope, clusterRecordName, list)
	body.Clusters = rowsOf(page, func(cluster *model.Cluster) api.ClusterRow { return api.ClusterRow{Cluster: cluster, Records: r} })
	return rest.Send(c, http.StatusOK, api.Clusters, &body)
}

func (h *handler) postClusters(c *rest.Call, _ *api.PostClustersParams) error {
	body, err := rest.ReadBody(c, api.ClustersBody)
	if err != nil {
		return err
	}
	if len(body.Records) == 0 {
		return h.answerEdit(c, editEach(h, c, clusterKind, body.Records))
	}
	_, err = h.makeEdit(c, strings.Join(clusterKind.names(body.Records), " "), func() ([]string, error) { return h.addClusters(c, body.Records) })
	return h.answerEdit(c, err)
}

var clusterKind = kind[api.ClusterRow]{list: "clusters", noun: "cluster", name: clusterName, put: addCluster}

func clusterName(l *api.ClusterRow) string { return l.Name }

// addCluster creates a cluster. It does not send an existing cluster to the
// daemon, because the daemon would reset that cluster.
func addCluster(tx *transaction, row *api.ClusterRow, at string) (bool, error) {
	if err := checkClusterName(row.Name, at); err != nil {
		return false, err
	}
	if row.Flags != model.NoVal32 && skipDeleted(tx, row.Flags, model.ClusterDeleted, at) {
		return false, nil
	}
	old, err := findOld[model.Cluster](tx, clustersNamed(row.Name))
	if err != nil {
		return false, err
	}
	if old != nil {
		tx.call.Warn(at, "cluster %s exists already and was not changed", row.Name)
		return false, nil
	}
	return true, add[model.Cluster](tx, *row.Cluster, clustersNamed(row.Name), at)
}

func (h *handler) deleteCluster(c *rest.Call, p *api.ClusterParams) error {
	if len(p.Names) > 0 && !model.HasName(p.Names, p.Name) {
		return errs.New(errs.NotFound, "there is no cluster %q, which the parameter cluster names", p.Name)
	}
	filter := p.ClusterFilter
	filter.Names = []string{p.Name}
	for _, w := range []struct {
		name  string
		isSet bool
	}{
		{"with_deleted", filter.WithDeleted}, {"with_usage", filter.WithUsage},
		{"usage_start", filter.UsageStart != 0}, {"usage_end", filter.UsageEnd != 0},
	} {
		if w.isSet {
			c.Warn(rest.InQuery+w.name, "has no effect")
		}
	}
	filter.WithDeleted, filter.WithUsage, filter.UsageStart, filter.UsageEnd = false, false, 0, 0
	remove := func(tx *transaction) (any, error) {
		name, err := tx.storedCluster(p.Name)
		filter.Names = []string{name}
		return model.Remove[model.Cluster]{Filter: filter}, err
	}
	names, err := h.removeRecords(c, "cluster", p.Name, rest.InPath+"cluster_name", remove, nil)
	return h.answerRemoval(c, api.ClustersRemoved, names, err)
}
