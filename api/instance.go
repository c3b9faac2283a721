package api

import (
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// Instance declares the fields of an instance.
var Instance = schema.Object("instance", func() schema.Fields[model.Instance] {
	return schema.Fields[model.Instance]{
		schema.F("cluster", schema.String, func(i *model.Instance) *string { return &i.Cluster }, "Cluster"),
		schema.F("extra", schema.String, func(i *model.Instance) *string { return &i.Extra }, "Text in the field extra of the node"),
		schema.F("instance_id", schema.String, func(i *model.Instance) *string { return &i.InstanceID }, "Id of the machine in the cloud"),
		schema.F("instance_type", schema.String, func(i *model.Instance) *string { return &i.InstanceType }, "Type of the machine in the cloud"),
		schema.F("node_name", schema.String, func(i *model.Instance) *string { return &i.Node }, "Name of the node"),
		schema.Group("time", "Time during which the machine was this node", schema.Fields[model.Instance]{
			schema.F("time_end", seconds, func(i *model.Instance) *model.Time { return &i.TimeEnd }, "End time; 0 while the machine is the node", schema.Unit(UnixTime)),
			schema.F("time_start", seconds, func(i *model.Instance) *model.Time { return &i.TimeStart }, "Start time", schema.Unit(UnixTime)),
		}),
	}
})

// InstancesAnswer is an answer with instances. An instance records which cloud
// machine a node ran on, and when.
type InstancesAnswer struct {
	Instances schema.Stream[model.Instance]
	Envelope
}

// Instances declares the fields of an InstancesAnswer.
var Instances = enveloped("openapi_instances_resp", func(a *InstancesAnswer) *Envelope { return &a.Envelope },
	schema.F("instances", schema.Named("instance_list", schema.StreamOf(Instance.Type)), func(a *InstancesAnswer) *schema.Stream[model.Instance] { return &a.Instances }, "The instances", schema.Required(0)),
)

// InstancesParams are the parameters of GetInstances and GetInstance.
type InstancesParams struct{ model.InstanceFilter }

var instancesParams = schema.Object("", func() schema.Fields[InstancesParams] {
	return schema.Fields[InstancesParams]{
		clusterTexts("cluster", "Clusters", func(p *InstancesParams) *[]string { return &p.Clusters }),
		texts("extra", "Texts in the field extra of nodes", func(p *InstancesParams) *[]string { return &p.Extra }),
		ignoredParam[InstancesParams]("format", schema.Until(V45)),
		texts("instance_id", "Ids of machines in the cloud", func(p *InstancesParams) *[]string { return &p.InstanceIDs }),
		texts("instance_type", "Types of machines in the cloud", func(p *InstancesParams) *[]string { return &p.InstanceTypes }),
		schema.F("node_list", hostList, func(p *InstancesParams) *string { return &p.Nodes }, "Nodes, as a host list"),
		schema.F("time_end", instant, func(p *InstancesParams) *model.Time { return &p.TimeEnd }, "Instances before this time", schema.Unit(TimeText)),
		schema.F("time_start", instant, func(p *InstancesParams) *model.Time { return &p.TimeStart }, "Instances after this time", schema.Unit(TimeText)),
	}
})

var GetInstances = declare(scope.SlurmdbRead, instancesParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "instances/", ID: "get_instances", Paged: true,
	Doc: "List the instances of nodes in a cloud", Answer: Instances,
	Description: "Returns which cloud machine each node ran on, and when. Each parameter narrows the list.",
	AnswerDoc:   "The instances",
})

// GetInstance returns all instances that match the parameters, not only one. It
// differs from GetInstances only in its path.
var GetInstance = declare(scope.SlurmdbRead, instancesParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "instance/", ID: "get_instance",
	Doc: "Show instances of nodes in a cloud", Answer: Instances,
	Description: "Returns all instances that match the parameters, like GET instances/.",
	AnswerDoc:   "The instances",
})
