package api

import (
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// ClustersBody declares the body of a request that creates clusters.
var ClustersBody = changes("openapi_clusters_resp", "clusters", "cluster_rec_list",
	withInitial(Cluster.Type, blankCluster), "The clusters")

func blankCluster() ClusterRow {
	c := model.BlankCluster()
	return ClusterRow{Cluster: &c}
}

// PostClustersParams are the parameters of PostClusters. They have no effect.
type PostClustersParams struct{}

var postClustersParams = schema.Object("", func() schema.Fields[PostClustersParams] {
	return schema.Fields[PostClustersParams]{ignoredUpdateTime[PostClustersParams]()}
})

var PostClusters = declare(scope.SlurmdbWrite, postClustersParams, Endpoint{
	Method: http.MethodPost, Accounting: true, Path: "clusters/", ID: "post_clusters",
	Doc: "Create clusters", Request: ClustersBody, Answer: Empty,
	Example:     `{"clusters": [{"name": "west"}]}`,
	Description: "Creates the clusters that do not exist. A cluster that exists is not changed, because the accounting daemon would reset it; a warning names this cluster. Requires administrator rights.",
	RequestDoc:  "The clusters",
	AnswerDoc:   "Only `meta`, `errors` and `warnings`: all requested clusters exist",
})

var ClustersRemoved = removed("openapi_clusters_removed_resp", "deleted_clusters", "The clusters that were removed")

var DeleteCluster = declare(scope.SlurmdbWrite, clusterParams, Endpoint{
	Method: http.MethodDelete, Accounting: true, Path: "cluster/{cluster_name}", ID: "delete_cluster",
	Doc: "Remove a cluster", Answer: ClustersRemoved,
	Description: "Removes the named cluster from accounting, if it also matches the parameters. A cluster with running jobs can't be removed (409). Requires administrator rights.",
	AnswerDoc:   "The cluster",
})
