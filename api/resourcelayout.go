package api

import (
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// resourceLayout declares the fields for a job's resources on one node.
var resourceLayout = schema.Object("node_resource_layout", func() schema.Fields[model.ResourceLayout] {
	return schema.Fields[model.ResourceLayout]{
		schema.F("node", schema.String, func(l *model.ResourceLayout) *string { return &l.Node }, "Name of the node", schema.Required(0)),
		schema.F("sockets_per_node", schema.Int32, func(l *model.ResourceLayout) *uint16 { return &l.SocketsPerNode }, "Number of sockets of the node", schema.Count),
		schema.F("cores_per_socket", schema.Int32, func(l *model.ResourceLayout) *uint16 { return &l.CoresPerSocket }, "Number of cores of a socket", schema.Count),
		schema.F("mem_alloc", schema.Int64, func(l *model.ResourceLayout) *uint64 { return &l.Memory }, "Memory of the node that is allocated to the job", schema.Unit("MiB")),
		schema.F("core_bitmap", schema.String, func(l *model.ResourceLayout) *string { return &l.Cores }, "Cores of the node that are allocated to the job: a hexadecimal number with a bit for each core of the node"),
		schema.F("channel", number, func(l *model.ResourceLayout) *model.Opt[uint32] { return &l.Channel }, "Network channel of the job on the node", schema.Bare),
		schema.F("gres", schema.Named("node_gres_layout_list", schema.List(gresLayout.Type)), func(l *model.ResourceLayout) *[]model.GRESLayout { return &l.GRES }, "Generic resources of the node that are allocated to the job"),
	}
})

var gresLayout = schema.Object("node_gres_layout", func() schema.Fields[model.GRESLayout] {
	return schema.Fields[model.GRESLayout]{
		schema.F("name", schema.String, func(g *model.GRESLayout) *string { return &g.Name }, "Name of the resource", schema.Required(0)),
		schema.F("type", schema.String, func(g *model.GRESLayout) *string { return &g.Type }, "Type of the resource, if there are several"),
		schema.F("count", schema.Int64, func(g *model.GRESLayout) *uint64 { return &g.Count }, "Number of allocated units", schema.Count),
		schema.Show("index", schema.String, func(g *model.GRESLayout) string { return rangeList(members(&g.Index)) }, "Numbers of the devices, as ranges; empty if the devices are not distinguished"),
	}
})

type ResourcesAnswer struct {
	Nodes []model.ResourceLayout
	Envelope
}

// Resources declares the fields of a ResourcesAnswer.
var Resources = enveloped("openapi_resource_layout_resp", func(a *ResourcesAnswer) *Envelope { return &a.Envelope },
	schema.F("nodes", schema.Named("node_resource_layout_list", schema.List(resourceLayout.Type)), func(a *ResourcesAnswer) *[]model.ResourceLayout { return &a.Nodes }, "Resources of the job on each node; empty for a job without an allocation", schema.Required(0)),
)

type ResourcesParams struct{ Job model.JobSelection }

var resourcesParams = schema.Object("", func() schema.Fields[ResourcesParams] {
	return schema.Fields[ResourcesParams]{
		schema.F("job_id", oneJob, func(p *ResourcesParams) *model.JobSelection { return &p.Job }, "Number of the job", schema.Required(0))}
})

// GetResources shows the resources of a job on each of its nodes.
var GetResources = declare(scope.ComputeRead, resourcesParams, Endpoint{
	Method: http.MethodGet, Path: "resources/{job_id}", ID: "get_resources",
	Doc: "Show the resources of a job", Answer: Resources, Since: V44,
	Description: "Returns the cores, memory and generic resources of a job on each of its nodes. Only the user of the job and operators may request this. Returns 422 for a pending job and 404 for an unknown one. Controllers before Slurm 25.11 do not support the request (501).",
	AnswerDoc:   "Resources of the job on each node",
})
