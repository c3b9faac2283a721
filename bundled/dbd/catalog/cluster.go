package catalog

import (
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// ListClusters returns the clusters that f selects. Clusters of this daemon
// have neither a federation nor a protocol version. So a filter on federations
// or on protocol versions matches no cluster. The addresses of the clusters'
// controllers are unknown.
func (b *Catalog) ListClusters(f *model.ClusterFilter) (list []model.Cluster) {
	if len(f.Federations)+len(f.RPCVersions) > 0 {
		return nil
	}
	for _, c := range Sorted(b.Clusters) {
		if Matches(f.Names, c.Name) && (f.Classification == 0 || f.Classification == c.Classification) &&
			f.Flags.Or(0)&^c.Flags == 0 {
			rec := *c
			if a := b.findAssociation(c.Name, root, "", ""); a != nil {
				rec.RootAssoc = *a
			}
			list = append(list, rec)
		}
	}
	return list
}

// AddClusters adds the clusters in list. Each new cluster gets two
// associations: one of the account root, and one of the user root with this
// account.
func (b *Catalog) AddClusters(list []model.Cluster) error {
	for i := range list {
		c := &list[i]
		if err := checkName("cluster", c.Name); err != nil {
			return err
		}
		if b.Clusters[b.cluster(c.Name)] != nil {
			return errs.New(errs.Conflict, "the cluster %s exists already", c.Name)
		}
		rec := model.Cluster{Name: c.Name, Classification: c.Classification}
		if c.Flags != model.NoVal32 {
			rec.Flags = c.Flags
		}
		insert(&b.clusterKeys, b.Clusters, c.Name, &rec)
		b.insertAssociation(&model.Association{Account: root, Cluster: c.Name})
		b.insertAssociation(&model.Association{Account: root, Cluster: c.Name, User: root, IsDefault: model.Some[uint16](1)})
	}
	return nil
}

// RemoveClusters removes the clusters that f selects, with their associations.
// It returns the names of these clusters.
func (b *Catalog) RemoveClusters(f *model.ClusterFilter) (names []string) {
	for _, c := range b.ListClusters(f) {
		delete(b.Clusters, c.Name)
		names = append(names, c.Name)
		for id, a := range b.Associations {
			if a.Cluster == c.Name {
				delete(b.Associations, id)
			}
		}
	}
	return names
}
