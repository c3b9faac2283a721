package api

import (
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// ClusterRow is a cluster, with a Records value, which translates the cluster's
// ids to names.
type ClusterRow struct {
	*model.Cluster
	*Records
}

// clusterFlags are the names of a cluster's flags.
var clusterFlags = schema.Words("cluster_rec_flags",
	schema.Bit("DELETED", clusterDeleted, schema.Since(V43)),
	schema.Bit("REGISTERING", uint32(1)<<0),
	schema.Bit("MULTIPLE_SLURMD", uint32(1)<<7),
	schema.Bit("FRONT_END", uint32(1)<<9, schema.Until(V43)),
	schema.Bit("FEDERATION", uint32(1)<<11),
	schema.Bit("EXTERNAL", uint32(1)<<12),
)

const clusterDeleted uint32 = 1 << 1

// Cluster declares the fields of a cluster.
var Cluster = schema.Object("cluster_rec", func() schema.Fields[ClusterRow] {
	return schema.Fields[ClusterRow]{
		schema.Group("controller", "Controller of the cluster", schema.Fields[ClusterRow]{
			schema.Show("host", schema.String, func(c *ClusterRow) string { return c.ControlHost }, "Host name; empty until the controller is registered"),
			schema.Show("port", schema.Int32, func(c *ClusterRow) uint32 { return c.ControlPort }, "Port of the controller", schema.Bare),
		}),
		schema.F("flags", clusterFlags.Type, func(c *ClusterRow) *uint32 { return &c.Flags }, "Flags of the record"),
		schema.F("name", schema.String, func(c *ClusterRow) *string { return &c.Name }, "Name of the cluster"),
		schema.Show("nodes", schema.String, func(c *ClusterRow) string { return c.Nodes }, "Nodes of the cluster, as a host list"),
		schema.Show("select_plugin", schema.String, func(*ClusterRow) string { return "" }, "No longer used", schema.Deprecated(V41), schema.Until(V45)),
		schema.Group("associations", "Associations of the cluster", schema.Fields[ClusterRow]{
			schema.Show("root", assocShort.Type, func(c *ClusterRow) model.Association { return c.RootAssoc }, "Root association"),
		}),
		schema.Show("rpc_version", schema.Int32, func(c *ClusterRow) uint16 { return c.RPCVersion }, "Protocol version of the controller, times 256", schema.Bare),
		schema.Show("tres", amounts, func(c *ClusterRow) []model.TRES { return c.Amounts(c.Cluster.TRES) }, "Resources of the cluster"),
	}
})

type ClustersAnswer struct {
	Clusters schema.Stream[ClusterRow]
	Envelope
}

// Clusters declares the fields of a ClustersAnswer.
var Clusters = enveloped("openapi_clusters_resp", func(a *ClustersAnswer) *Envelope { return &a.Envelope },
	schema.F("clusters", schema.Named("cluster_rec_list", schema.StreamOf(Cluster.Type)), func(a *ClustersAnswer) *schema.Stream[ClusterRow] { return &a.Clusters }, "The clusters", schema.Required(0)),
)

type ClustersParams struct{ model.ClusterFilter }

var clustersParams = schema.Object("", func() schema.Fields[ClustersParams] {
	return append(schema.Fields[ClustersParams]{ignoredUpdateTime[ClustersParams]()},
		clusterFilter(func(p *ClustersParams) *model.ClusterFilter { return &p.ClusterFilter }, schema.Undocumented(V40))...)
})

func ignoredUpdateTime[P any]() schema.Field[P] {
	return schema.Ignore[P]("update_time", instant, "Ignored: clusters have no time of last change", schema.Unit(TimeText))
}

var GetClusters = declare(scope.SlurmdbRead, clustersParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "clusters/", ID: "get_clusters", Paged: true,
	Doc: "List the clusters", Answer: Clusters,
	Description: "Returns all clusters for which the accounting daemon has records.",
	AnswerDoc:   "The clusters",
})

type ClusterParams struct {
	Name string
	model.ClusterFilter
}

// classifications are the words for the purpose of a cluster.
var classifications = schema.Words("cluster_classification",
	schema.Part("UNCLASSIFIED", ^uint16(0), 0),
	schema.Part("CAPABILITY", ^uint16(0), 1),
	schema.Part("CAPACITY", ^uint16(0), 2),
	schema.Part("CAPAPACITY (both CAPABILITY and CAPACITY)", ^uint16(0), 3, schema.Until(V42)),
	schema.Part("CAPAPACITY", ^uint16(0), 3, schema.Since(V42)),
)

var clusterParams = schema.Object("", func() schema.Fields[ClusterParams] {
	fields := schema.Fields[ClusterParams]{
		schema.F("cluster_name", objectName("cluster"), func(p *ClusterParams) *string { return &p.Name }, "Name of the cluster", schema.Required(0))}
	return append(fields, clusterFilter(func(p *ClusterParams) *model.ClusterFilter { return &p.ClusterFilter })...)
})

// clusterFilter returns the parameters that select clusters.
func clusterFilter[P any](of func(*P) *model.ClusterFilter, opts ...schema.Option) schema.Fields[P] {
	with := func(more ...schema.Option) []schema.Option { return append(more, opts...) }
	return schema.Fields[P]{
		schema.F("classification", joined(classifications), func(p *P) *uint16 { return &of(p).Classification }, "Classification that the cluster must have", opts...),
		clusterTexts("cluster", "Names of clusters", func(p *P) *[]string { return &of(p).Names }, opts...),
		texts("federation", "Federations of clusters", func(p *P) *[]string { return &of(p).Federations }, opts...),
		schema.Set("flags", joined(clusterFlags), func(p *P, n uint32) error { of(p).Flags = model.Some(n); return nil }, "Flags, separated by commas; the cluster must have one of them", opts...),
		ignoredParam[P]("format", with(schema.Until(V45))...),
		numberTexts("rpc_version", "Protocol versions of controllers", func(p *P) *[]string { return &of(p).RPCVersions }, opts...),
		schema.F("usage_end", instant, func(p *P) *model.Time { return &of(p).UsageEnd }, "End of the requested period of usage", with(schema.Unit(TimeText))...),
		schema.F("usage_start", instant, func(p *P) *model.Time { return &of(p).UsageStart }, "Start of the requested period of usage", with(schema.Unit(TimeText))...),
		schema.F("with_deleted", boolText, func(p *P) *bool { return &of(p).WithDeleted }, "Include the record even if it is deleted", opts...),
		schema.F("with_usage", boolText, func(p *P) *bool { return &of(p).WithUsage }, "Request usage; the answer has no field for it", opts...),
	}
}

var GetCluster = declare(scope.SlurmdbRead, clusterParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "cluster/{cluster_name}", ID: "get_cluster",
	Doc: "Show one cluster", Answer: Clusters,
	Description: "Returns the cluster with this name.",
	AnswerDoc:   "The cluster, in a list",
})
