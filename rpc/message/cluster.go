package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// GetClusters requests clusters (table db_cluster_cond).
type GetClusters struct{ model.ClusterFilter }

// Walk encodes or decodes the fields in wire order.
func (m *GetClusters) Walk(c *codec.Codec) {
	c.Uint16("classification", &m.Classification)
	clusters(c, "cluster_list", &m.Names)
	texts(c, "federation_list", &m.Federations)
	c.OptUint32("flags", &m.Flags)
	texts(c, "format_list", &m.Format)
	if c.Until(codec.V2311) {
		var plugins []string // removed plugins
		texts(c, "plugin_id_select_list", &plugins)
	}
	texts(c, "rpc_version_list", &m.RPCVersions)
	c.Time("usage_end", &m.UsageEnd)
	c.Time("usage_start", &m.UsageStart)
	flag16(c, "with_usage", &m.WithUsage)
	flag16(c, "with_deleted", &m.WithDeleted)
}

var _ = recordList(RecordList{Get: AccountingGetClusters, Got: AccountingGotClusters},
	func(f model.ClusterFilter) Body { return &GetClusters{f} }, func() *Clusters { return new(Clusters) })

// Clusters is the answer to GetClusters.
type Clusters struct{ ListResponse[model.Cluster] }

// Walk encodes or decodes the fields in wire order.
func (m *Clusters) Walk(c *codec.Codec) { m.walk(c, "db_cluster_rec", cluster) }

// cluster encodes or decodes a cluster (table db_cluster_rec).
func cluster(c *codec.Codec, l *model.Cluster) {
	if c.Since(codec.V2411) && absent(c) {
		return
	}
	codec.List(c, "accounting_list", "db_cluster_accounting_rec", &l.Usage, clusterUsage)
	c.Uint16("classification", &l.Classification)
	c.String("control_host", &l.ControlHost)
	c.Uint32("control_port", &l.ControlPort)
	c.Uint16("dimensions", &l.Dimensions)
	texts(c, "fed.feature_list", &l.Federation.Features)
	c.String("fed.name", &l.Federation.Name)
	c.Uint32("fed.id", &l.Federation.ID)
	c.Uint32("fed.state", &l.Federation.State)
	c.Uint8("fed.sync_recvd", &l.Federation.SyncReceived)
	c.Uint8("fed.sync_sent", &l.Federation.SyncSent)
	c.Uint32("flags", &l.Flags)
	if c.Since(codec.V2411) {
		c.Uint16("id", &l.ID)
	}
	c.StringOf(codec.ClusterChars, "name", &l.Name)
	c.String("nodes", &l.Nodes)
	if c.Until(codec.V2405) {
		c.Uint32("plugin_id_select", &l.SelectPlugin)
	}
	codec.Record(c, "root_assoc", "db_assoc_rec", &l.RootAssoc, association)
	c.Uint16("rpc_version", &l.RPCVersion)
	flag8(c, connectedFlagName(c), &l.Federation.Receiving)
	flag8(c, connectedFlagName(c), &l.Federation.Sending)
	c.String("tres_str", &l.TRES)
}

// connectedFlagName returns the name that the protocol's table has for both
// flags of a federation. Slurm's code has no names for these flags: for each
// flag, it sends the value of an expression. Both expressions end with the same
// text, which the table uses as the name.
func connectedFlagName(c *codec.Codec) string {
	switch {
	case c.Until(codec.V2505):
		return "fd != -1) ? 1 : 0"
	case c.Until(codec.V2511):
		return "tls_conn) ? 1 : 0"
	}
	return "conn) ? 1 : 0"
}

// clusterUsage encodes or decodes the resources that a cluster used in a period
// (table db_cluster_accounting_rec).
func clusterUsage(c *codec.Codec, u *model.ClusterUsage) {
	c.Uint64("alloc_secs", &u.AllocSecs)
	codec.Record(c, "tres_rec", "db_tres_rec", &u.TRES, tres)
	c.Uint64("down_secs", &u.DownSecs)
	c.Uint64("idle_secs", &u.IdleSecs)
	c.Uint64("over_secs", &u.OverSecs)
	c.Uint64("pdown_secs", &u.PlannedDownSecs)
	c.Time("period_start", &u.PeriodStart)
	c.Uint64("plan_secs", &u.PlannedSecs)
}
