package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// Reroute is an answer that names another cluster of the federation. The client
// must send its request to that cluster (table reroute_response).
type Reroute struct {
	Cluster     *model.Cluster // nil for none
	StepManager string
}

// Walk encodes or decodes the fields in wire order.
func (m *Reroute) Walk(c *codec.Codec) {
	hasCluster := m.Cluster != nil
	flag8(c, "has_working_cluster", &hasCluster)
	if c.If("has_working_cluster", hasCluster) {
		if m.Cluster == nil {
			m.Cluster = new(model.Cluster)
		}
		codec.Record(c, "working_cluster_rec", "db_cluster_rec", m.Cluster, cluster)
	}
	c.EndIf()
	if c.Since(codec.V2405) {
		c.String("stepmgr", &m.StepManager)
	}
}
