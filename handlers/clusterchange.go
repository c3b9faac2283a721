package handlers

import (
	"slices"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// postClusters creates clusters.
func (h *handler) postClusters(c *rest.Call, _ *api.ClustersParams) error {
	body, err := rest.ReadBody(c, api.ClustersBody)
	if err != nil {
		return err
	}
	return h.answerEdit(c, editEach(h, c, clusterKind, body.Records))
}

var clusterKind = kind[api.ClusterRow]{"clusters", "cluster", clusterName, addCluster}

func clusterName(l *api.ClusterRow) string { return l.Name }

// addCluster creates a cluster. It does not send an existing cluster to the
// daemon, because the daemon would reset that cluster.
func addCluster(tx *transaction, row *api.ClusterRow, at string) (bool, error) {
	if err := checkName(row.Name, at); err != nil {
		return false, err
	}
	if !api.IsClusterName(row.Name) {
		return false, errs.New(errs.Invalid, "a name of a cluster may contain only letters, digits, '_', '-' and '.'").WithSource(at + "/name").WithNumber(slurmerror.BadName)
	}
	if row.Flags != model.NoVal32 && skipDeleted(tx, row.Flags, model.ClusterDeleted, at) {
		return false, nil
	}
	old, err := findOne[model.Cluster](tx, model.ClusterFilter{Names: []string{row.Name}})
	if err != nil {
		return false, err
	}
	if old != nil {
		tx.call.Warn(at, "cluster %s exists already and was not changed", row.Name)
		return false, nil
	}
	return true, add[model.Cluster](tx, *row.Cluster, model.ClusterFilter{Names: []string{row.Name}}, at)
}

// deleteCluster removes a cluster.
func (h *handler) deleteCluster(c *rest.Call, p *api.ClusterParams) error {
	if len(p.Names) > 0 && !slices.Contains(p.Names, p.Name) {
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
	remove := removal(model.Remove[model.Cluster]{Filter: filter})
	names, err := h.removeRecords(c, "cluster", p.Name, rest.InPath+"cluster_name", remove, nil)
	return h.answerRemoval(c, api.ClustersRemoved, names, err)
}
