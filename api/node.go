package api

import (
	"net/http"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// NodeRow is the record of a node, with data that the record lacks: the node's
// partitions, and a Users value, which translates user ids to names.
type NodeRow struct {
	*model.Node
	Partitions []string
	Users      Users
	Unmixed    bool // show a partly allocated node as ALLOCATED, because the client did not request MIXED
}

// Node declares the fields of a compute node.
var Node = schema.Object("node", func() schema.Fields[NodeRow] {
	return schema.Fields[NodeRow]{
		schema.F("architecture", schema.String, func(n *NodeRow) *string { return &n.Architecture }, "Processor architecture"),
		schema.F("burstbuffer_network_address", schema.String, func(n *NodeRow) *string { return &n.BroadcastAddress }, "Address for broadcasts to the node"),
		schema.F("boards", schema.Int32, func(n *NodeRow) *uint16 { return &n.Boards }, "Number of base boards", schema.Count),
		schema.F("boot_time", moment, func(n *NodeRow) *model.Time { return &n.BootTime }, "Boot time", schema.Unit(UnixTime)),
		schema.F("tls_cert_last_renewal", moment, func(n *NodeRow) *model.Time { return &n.CertLastRenewal }, "Time when the TLS certificate was last renewed", schema.Unit(UnixTime), schema.Since(V43)),
		schema.F("cert_flags", certFlags.Type, func(n *NodeRow) *uint16 { return &n.CertFlags }, "Flags of the TLS certificate", schema.Since(V43)),
		schema.Show("cluster_name", schema.String, func(*NodeRow) string { return "" }, "Cluster of the node, if it is another cluster of a federation"),
		schema.F("cores", schema.Int32, func(n *NodeRow) *uint16 { return &n.Cores }, "Number of cores in each socket", schema.Count),
		schema.F("specialized_cores", schema.Int32, func(n *NodeRow) *uint16 { return &n.SpecializedCores }, "Number of cores not available to jobs", schema.Count),
		schema.F("cpu_binding", schema.Int32, func(n *NodeRow) *uint32 { return &n.CPUBind }, "How tasks are bound to processors by default, as bits", schema.Bare),
		schema.Show("cpu_load", schema.Int32, func(n *NodeRow) uint32 { return n.CPULoad.Or(0) }, "Load average times 100", schema.Bare),
		schema.F("free_mem", number, func(n *NodeRow) *model.Opt[uint64] { return &n.FreeMem }, "Free memory according to the last report of the node", schema.Unit("MiB")),
		schema.F("cpus", schema.Int32, func(n *NodeRow) *uint16 { return &n.CPUs }, "Number of processors", schema.Count),
		schema.F("effective_cpus", schema.Int32, func(n *NodeRow) *uint16 { return &n.EffectiveCPUs }, "Number of processors that jobs may use", schema.Count),
		schema.F("specialized_cpus", schema.String, func(n *NodeRow) *string { return &n.SpecializedCPUs }, "Processors not available to jobs, as a list"),
		schema.F("energy", Energy.Type, func(n *NodeRow) *model.Energy { return &n.Energy }, "Energy consumption"),
		schema.Show("external_sensors", schema.NamedUntil(V41, "ext_sensors_data", empty), func(*NodeRow) (none struct{}) { return }, "No longer used", schema.Deprecated(V41), schema.Until(V45)),
		schema.F("extra", schema.String, func(n *NodeRow) *string { return &n.Extra }, "Text for node selection, with a meaning defined by the site"),
		schema.Show("power", schema.NamedUntil(V41, "power_mgmt_data", empty), func(*NodeRow) (none struct{}) { return }, "No longer used", schema.Deprecated(V41), schema.Until(V45)),
		schema.Show("features", csvString, func(n *NodeRow) []string { return commaList(n.Features) }, "Configured features"),
		schema.Show("active_features", csvString, func(n *NodeRow) []string { return commaList(n.ActiveFeatures) }, "Active features"),
		schema.F("gpu_spec", schema.String, func(n *NodeRow) *string { return &n.GPUSpec }, "Cores kept for jobs that use a GPU", schema.Since(V41)),
		schema.F("gres", schema.String, func(n *NodeRow) *string { return &n.GRES }, "Generic resources"),
		schema.F("gres_drained", schema.String, func(n *NodeRow) *string { return &n.GRESDrained }, "Unavailable generic resources"),
		schema.F("gres_used", schema.String, func(n *NodeRow) *string { return &n.GRESUsed }, "Generic resources in use"),
		schema.F("instance_id", schema.String, func(n *NodeRow) *string { return &n.InstanceID }, "Identifier of the node in a cloud"),
		schema.F("instance_type", schema.String, func(n *NodeRow) *string { return &n.InstanceType }, "Type of the node in a cloud"),
		schema.F("last_busy", moment, func(n *NodeRow) *model.Time { return &n.LastBusy }, "Time when the node last ran a job", schema.Unit(UnixTime)),
		schema.F("mcs_label", schema.String, func(n *NodeRow) *string { return &n.MCSLabel }, "Multi-category security label in use"),
		schema.F("specialized_memory", schema.Int64, func(n *NodeRow) *uint64 { return &n.SpecializedMemory }, "Memory not available to jobs", schema.Unit("MiB")),
		schema.F("name", schema.String, func(n *NodeRow) *string { return &n.Name }, "Name of the node"),
		schema.F("next_state_after_reboot", nodeStates.Type, func(n *NodeRow) *model.NodeState { return &n.NextState }, "State after the next reboot; INVALID if none is planned"),
		schema.F("address", schema.String, func(n *NodeRow) *string { return &n.Address }, "Address of the node"),
		schema.F("hostname", schema.String, func(n *NodeRow) *string { return &n.Hostname }, "Name of the machine"),
		schema.Show("state", nodeStates.Type, shownState, "Base state, followed by flags"),
		schema.F("operating_system", schema.String, func(n *NodeRow) *string { return &n.OS }, "Kernel and its version"),
		schema.Show("owner", schema.String, func(n *NodeRow) string { return userName(n.Users, n.Owner.Or(noUser)) }, "User who has exclusive use of the node"),
		schema.F("partitions", csvString, func(n *NodeRow) *[]string { return &n.Partitions }, "Partitions of the node"),
		schema.F("port", schema.Int32, func(n *NodeRow) *uint16 { return &n.Port }, "Port of the node's daemon", schema.Bare),
		schema.F("real_memory", schema.Int64, func(n *NodeRow) *uint64 { return &n.Memory }, "Total memory", schema.Unit("MiB")),
		schema.F("res_cores_per_gpu", schema.Int32, func(n *NodeRow) *uint16 { return &n.ResCoresPerGPU }, "Number of cores reserved for jobs of each GPU", schema.Count, schema.Since(V41)),
		schema.F("comment", schema.String, func(n *NodeRow) *string { return &n.Comment }, "Any text"),
		schema.F("reason", schema.String, func(n *NodeRow) *string { return &n.Reason }, "Reason why the node is down or drained"),
		schema.F("reason_changed_at", moment, func(n *NodeRow) *model.Time { return &n.ReasonTime }, "Time when the reason was set", schema.Unit(UnixTime)),
		schema.Show("reason_set_by_user", schema.String, func(n *NodeRow) string { return userName(n.Users, n.ReasonUID) }, "User who set the reason", schema.Until(V45)),
		schema.Show("reason_set_by_user", schema.String, reasonUser, "User who set the reason; empty without a reason", schema.Since(V45)),
		schema.F("resume_after", moment, func(n *NodeRow) *model.Time { return &n.ResumeAfter }, "Time at which the node returns to service automatically", schema.Unit(UnixTime)),
		schema.F("reservation", schema.String, func(n *NodeRow) *string { return &n.Reservation }, "Reservation that contains the node"),
		schema.F("alloc_memory", schema.Int64, func(n *NodeRow) *uint64 { return &n.AllocMemory }, "Memory allocated to jobs", schema.Unit("MiB")),
		schema.F("alloc_cpus", schema.Int32, func(n *NodeRow) *uint16 { return &n.AllocCPUs }, "Number of processors allocated to jobs", schema.Count),
		schema.Show("alloc_idle_cpus", schema.Int32, idleCPUs, "Number of processors that no job uses", schema.Count),
		schema.F("tres_used", schema.String, func(n *NodeRow) *string { return &n.AllocTRES }, "Allocated trackable resources"),
		schema.F("tres_weighted", schema.Float, func(n *NodeRow) *float64 { return &n.AllocTRESWeighted }, "Weight of the allocated resources, for billing", schema.Bare, schema.Deprecated(V43), schema.Until(V45)),
		schema.F(fieldDaemonStart.sched, moment, func(n *NodeRow) *model.Time { return &n.DaemonStartTime }, "Start time of the node's daemon", schema.Unit(UnixTime), schema.InSlurm(fieldDaemonStart.slurm)),
		schema.F("suspend_time", number, func(n *NodeRow) *model.Opt[uint32] { return &n.SuspendTime }, "Idle time after which the node is powered down", schema.Unit("s"), schema.Since(V45)),
		schema.F("sockets", schema.Int32, func(n *NodeRow) *uint16 { return &n.Sockets }, "Number of sockets", schema.Count),
		schema.F("threads", schema.Int32, func(n *NodeRow) *uint16 { return &n.Threads }, "Number of threads of each core", schema.Count),
		schema.F("temporary_disk", schema.Int32, func(n *NodeRow) *uint32 { return &n.TmpDisk }, "Temporary disk space", schema.Unit("MiB")),
		schema.F("weight", schema.Int32, func(n *NodeRow) *uint32 { return &n.Weight }, "Scheduling weight; nodes with a low weight are used first", schema.Bare),
		schema.F("topology", schema.String, func(n *NodeRow) *string { return &n.Topology }, "Position in the network topology", schema.Since(V43)),
		schema.F("tres", schema.String, func(n *NodeRow) *string { return &n.TRES }, "Configured trackable resources"),
		schema.F("version", schema.String, func(n *NodeRow) *string { return &n.Version }, "Version of the node's daemon"),
	}
})

// Energy declares the fields for a node's energy consumption.
var Energy = schema.Object("acct_gather_energy", func() schema.Fields[model.Energy] {
	return schema.Fields[model.Energy]{
		schema.F("average_watts", schema.Int32, func(e *model.Energy) *uint32 { return &e.AverageWatts }, "Mean power", schema.Unit("W")),
		schema.F("base_consumed_energy", schema.Int64, func(e *model.Energy) *uint64 { return &e.BaseConsumedEnergy }, "Energy used before the node's daemon started", schema.Unit("J")),
		schema.F("consumed_energy", schema.Int64, func(e *model.Energy) *uint64 { return &e.ConsumedEnergy }, "Energy used since the node's daemon started", schema.Unit("J")),
		schema.F("current_watts", number, func(e *model.Energy) *model.Opt[uint32] { return &e.CurrentWatts }, "Current power", schema.Unit("W")),
		schema.F("previous_consumed_energy", schema.Int64, func(e *model.Energy) *uint64 { return &e.PreviousConsumedEnergy }, "Energy used until the previous measurement", schema.Unit("J")),
		schema.F("last_collected", seconds, func(e *model.Energy) *model.Time { return &e.PollTime }, "Time of measurement", schema.Unit(UnixTime)),
	}
})

// reasonUser returns the user who set the node's reason. Without a reason, the
// user id in the record is 0 but has no meaning, so reasonUser returns ""
// instead of root.
func reasonUser(n *NodeRow) string {
	if n.Reason == "" {
		return ""
	}
	return userName(n.Users, n.ReasonUID)
}

// idleCPUs returns the number of idle processors. If the controller reports
// more allocated processors than the node has, idleCPUs returns 0.
func idleCPUs(n *NodeRow) uint16 {
	if n.AllocCPUs > n.CPUs {
		return 0
	}
	return n.CPUs - n.AllocCPUs
}

// commaList splits a string at its commas. For an empty string it returns no
// elements.
func commaList(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// NodesAnswer is an answer with nodes. LastUpdate is valid only after all nodes
// have been read from the stream.
type NodesAnswer struct {
	Nodes      schema.Stream[NodeRow]
	LastUpdate model.Time
	Envelope
}

// Nodes declares the fields of a NodesAnswer.
var Nodes = enveloped("openapi_nodes_resp", func(a *NodesAnswer) *Envelope { return &a.Envelope },
	schema.F("nodes", schema.Named("nodes", schema.StreamOf(Node.Type)), func(a *NodesAnswer) *schema.Stream[NodeRow] { return &a.Nodes }, "The nodes", schema.Required(0)),
	schema.F("last_update", moment, func(a *NodesAnswer) *model.Time { return &a.LastUpdate }, "Time of the last change of any object in the list", schema.Unit(UnixTime), schema.Required(0)),
)

// NodeListParams are the parameters of GetNodes.
type NodeListParams struct {
	model.Query
	NodeFilter
}

var nodeListParams = schema.Object("", func() schema.Fields[NodeListParams] {
	return append(listFields(func(p *NodeListParams) *model.Query { return &p.Query }),
		nodeFilterFields(func(p *NodeListParams) *NodeFilter { return &p.NodeFilter })...)
})

// GetNodes lists the nodes.
var GetNodes = declare(scope.ComputeRead, nodeListParams, Endpoint{
	Method: http.MethodGet, Path: "nodes/", ID: "get_nodes", Paged: true, Collection: "nodes",
	Doc: "List the nodes", Answer: Nodes,
	Description: "Returns all nodes that the user may see, in the controller's order. A client that polls can send update_time and gets an empty answer if nothing has changed.",
	AnswerDoc:   "The nodes",
})

type NodeParams struct {
	Name string
	model.Query
}

var nodeParams = schema.Object("", func() schema.Fields[NodeParams] {
	return schema.Fields[NodeParams]{
		schema.F("node_name", schema.String, func(p *NodeParams) *string { return &p.Name }, "Name of the node", schema.Required(0)),
		updateTime(func(p *NodeParams) *model.Query { return &p.Query }),
		flags(func(p *NodeParams) *model.Query { return &p.Query }),
	}
})

var GetNode = declare(scope.ComputeRead, nodeParams, Endpoint{
	Method: http.MethodGet, Path: "node/{node_name}", ID: "get_node",
	Doc: "Show one node", Answer: Nodes,
	Description: "Returns the node with this name, in a list.",
	AnswerDoc:   "The node, in a list",
})
