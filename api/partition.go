package api

import (
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// Partition is a queue of jobs and the nodes that serve it.
var Partition = schema.Object("partition_info",
	schema.Group("nodes", "Its nodes", []schema.Field[model.Partition]{
		schema.F("allowed_allocation", schema.String, func(p *model.Partition) *string { return &p.AllowAllocNodes }, "Nodes that jobs may be submitted from; empty for all"),
		schema.F("configured", schema.String, func(p *model.Partition) *string { return &p.Nodes }, "Their names, as a host list"),
		schema.F("total", schema.Int32, func(p *model.Partition) *uint32 { return &p.TotalNodes }, "Number of nodes", schema.Count),
	}),
	schema.Group("accounts", "Who may use it, by account", []schema.Field[model.Partition]{
		schema.F("allowed", schema.String, func(p *model.Partition) *string { return &p.AllowAccounts }, "Accounts that may; empty for all"),
		schema.F("deny", schema.String, func(p *model.Partition) *string { return &p.DenyAccounts }, "Accounts that may not"),
	}),
	schema.Group("groups", "Who may use it, by group", []schema.Field[model.Partition]{
		schema.F("allowed", schema.String, func(p *model.Partition) *string { return &p.AllowGroups }, "Groups that may; empty for all"),
	}),
	schema.Group("qos", "Qualities of service", []schema.Field[model.Partition]{
		schema.F("allowed", schema.String, func(p *model.Partition) *string { return &p.AllowQOS }, "Those whose jobs may use it; empty for all"),
		schema.F("deny", schema.String, func(p *model.Partition) *string { return &p.DenyQOS }, "Those whose jobs may not"),
		schema.F("assigned", schema.String, func(p *model.Partition) *string { return &p.QOS }, "The one whose limits hold here"),
	}),
	schema.F("alternate", schema.String, func(p *model.Partition) *string { return &p.Alternate }, "Partition that takes the jobs when this one is down"),
	schema.Group("tres", "Trackable resources", []schema.Field[model.Partition]{
		schema.F("billing_weights", schema.String, func(p *model.Partition) *string { return &p.BillingWeights }, "What each counts in bills"),
		schema.F("configured", schema.String, func(p *model.Partition) *string { return &p.TRES }, "What it has of each"),
	}),
	schema.Show("cluster", schema.String, func(*model.Partition) string { return "" }, "Its cluster, when that is another of a federation"),
	schema.F("select_type", selectTypes.Type, func(p *model.Partition) *uint16 { return &p.CRType }, "What is allocated apart; empty for what the cluster does", schema.Since(V41)),
	schema.Group("cpus", "Its processors", []schema.Field[model.Partition]{
		schema.F("task_binding", schema.Int32, func(p *model.Partition) *uint32 { return &p.CPUBind }, "How tasks are bound to processors by default, as bits", schema.Bare),
		schema.F("total", schema.Int32, func(p *model.Partition) *uint32 { return &p.TotalCPUs }, "Number of processors", schema.Count),
	}),
	schema.Group("defaults", "What jobs get that do not ask", append(
		partitionMemory(func(p *model.Partition) uint64 { return p.DefMemPerCPU }),
		schema.F("time", number, func(p *model.Partition) *model.Opt[uint32] { return &p.DefaultTime }, "Time limit", schema.Unit("min")),
		schema.Show("job", schema.String, func(*model.Partition) string { return "" }, "Nothing: it is always empty"),
	)),
	schema.F("grace_time", schema.Int32, func(p *model.Partition) *uint32 { return &p.GraceTime }, "Time between the notice to a job and its preemption", schema.Unit("s")),
	schema.Group("maximums", "What jobs can have", append(
		partitionMemory(func(p *model.Partition) uint64 { return p.MaxMemPerCPU }),
		schema.F("cpus_per_node", number, func(p *model.Partition) *model.Opt[uint32] { return &p.MaxCPUsPerNode }, "Number of processors of a node that all jobs together can have", schema.Count),
		schema.F("cpus_per_socket", number, func(p *model.Partition) *model.Opt[uint32] { return &p.MaxCPUsPerSocket }, "Number of processors of a socket that all jobs together can have", schema.Count),
		schema.F("nodes", number, func(p *model.Partition) *model.Opt[uint32] { return &p.MaxNodes }, "Number of nodes of a job", schema.Count),
		schema.F("shares", schema.Int32, func(p *model.Partition) *uint16 { return &p.MaxShare }, "The members of oversubscribe in one: 32768 is force, added to the jobs", schema.Bare),
		schema.Group("oversubscribe", "Jobs beside each other", []schema.Field[model.Partition]{
			schema.Show("jobs", schema.Int32, func(p *model.Partition) uint16 { return p.MaxShare &^ shareForced }, "Number of jobs that share a resource", schema.Count),
			schema.F("flags", oversubscription.Type, func(p *model.Partition) *uint16 { return &p.MaxShare }, "force: whatever the jobs ask for"),
		}),
		schema.F("time", number, func(p *model.Partition) *model.Opt[uint32] { return &p.MaxTime }, "Time limit", schema.Unit("min")),
		schema.F("over_time_limit", number, func(p *model.Partition) *model.Opt[uint16] { return &p.OverTimeLimit }, "Time by which a job may exceed its limit", schema.Unit("min")),
	)),
	schema.Group("minimums", "What jobs must have", []schema.Field[model.Partition]{
		schema.F("nodes", schema.Int32, func(p *model.Partition) *uint32 { return &p.MinNodes }, "Number of nodes of a job", schema.Count),
	}),
	schema.F("name", schema.String, func(p *model.Partition) *string { return &p.Name }, "Name of the partition"),
	schema.F("node_sets", schema.String, func(p *model.Partition) *string { return &p.NodeSets }, "Sets of nodes that it is made of"),
	schema.Group("priority", "Rank of its jobs", []schema.Field[model.Partition]{
		schema.F("job_factor", schema.Int32, func(p *model.Partition) *uint16 { return &p.PriorityJobFactor }, "Its part in a job's priority", schema.Bare),
		schema.F("tier", schema.Int32, func(p *model.Partition) *uint16 { return &p.PriorityTier }, "Jobs of a higher one are looked at first, and may preempt", schema.Bare),
	}),
	schema.Group("timeouts", "Saving power: how long nodes may take; not set for what the cluster has", []schema.Field[model.Partition]{
		schema.F("resume", number, func(p *model.Partition) *model.Opt[uint16] { return &p.ResumeTimeout }, "To be there after they were powered up", schema.Unit("s")),
		schema.F("suspend", number, func(p *model.Partition) *model.Opt[uint16] { return &p.SuspendTimeout }, "To be off after they were powered down", schema.Unit("s")),
	}),
	schema.F("topology", schema.String, func(p *model.Partition) *string { return &p.Topology }, "Topology that holds for it, by name", schema.Since(V43)),
	schema.Group("partition", "The partition as such", []schema.Field[model.Partition]{
		schema.F("state", partitionStates.Type, func(p *model.Partition) *uint16 { return &p.StateUp }, "UP; DOWN: jobs wait; DRAIN: no new ones; INACTIVE: both"),
	}),
	schema.F("suspend_time", number, func(p *model.Partition) *model.Opt[uint32] { return &p.SuspendTime }, "Idle time after which a node is powered down; not set for what the cluster has", schema.Unit("s")),
)

// partitionMemory are the three ways to say an amount of memory, of a processor or of a node. In the
// first the mark that tells which is the sign, as 64 bits with a sign have it.
func partitionMemory(amount func(*model.Partition) uint64) []schema.Field[model.Partition] {
	return []schema.Field[model.Partition]{
		schema.Show("memory_per_cpu", schema.Int64, func(p *model.Partition) int64 { return int64(amount(p)) }, "Memory of a node; below zero it is that of a processor, with the greatest power of two added", schema.Unit("MiB")),
		schema.Show("partition_memory_per_cpu", number, func(p *model.Partition) model.Opt[uint64] { return memoryPerCPU(amount(p)) }, "Memory of each processor", schema.Unit("MiB")),
		schema.Show("partition_memory_per_node", number, func(p *model.Partition) model.Opt[uint64] { return memoryPerNode(amount(p)) }, "Memory of each node; 0 for no limit", schema.Unit("MiB")),
	}
}

// shareForced in a MaxShare: jobs share whether they like it or not.
const shareForced uint16 = 0x8000

var oversubscription = schema.Words("oversubscribe_flags", schema.Bit("force", shareForced))

// partitionStates are the words for whether jobs may be submitted (bit 0) and may start (bit 1).
var partitionStates = schema.Words("partition_states",
	schema.Part("INACTIVE", ^uint16(0), 0),
	schema.Part("UNKNOWN", ^uint16(0), ^uint16(0)-1),
	schema.Part("UP", ^uint16(0), 3),
	schema.Part("DOWN", ^uint16(0), 1),
	schema.Part("DRAIN", ^uint16(0), 2),
)

// PartitionsAnswer is the body of an answer with partitions. LastUpdate counts once Partitions has ended.
type PartitionsAnswer struct {
	Partitions schema.Stream[model.Partition]
	LastUpdate model.Time
	Envelope
}

// Partitions is the table of a PartitionsAnswer.
var Partitions = enveloped("openapi_partition_resp", func(a *PartitionsAnswer) *Envelope { return &a.Envelope },
	schema.F("partitions", schema.Named("partition_info_msg", schema.StreamOf(Partition.Type)), func(a *PartitionsAnswer) *schema.Stream[model.Partition] { return &a.Partitions }, "The partitions", schema.Required(0)),
	schema.F("last_update", moment, func(a *PartitionsAnswer) *model.Time { return &a.LastUpdate }, "When any of this last changed", schema.Unit(UnixTime), schema.Required(0)),
)

// GetPartitions lists the partitions.
var GetPartitions = declare(shownParams, Endpoint{
	Method: http.MethodGet, Path: "partitions/", ID: "get_partitions",
	Doc: "List the partitions", Answer: Partitions,
	About:   "The partitions that the user may use, in the controller's order: with the flag ALL the hidden ones and those of others too.",
	Returns: "The partitions",
})

// PartitionParams are the parameters of GetPartition.
type PartitionParams struct {
	Name string
	model.Query
}

var partitionParams = schema.Object("",
	schema.F("partition_name", schema.String, func(p *PartitionParams) *string { return &p.Name }, "Name of the partition", schema.Required(0)),
	updateTime(func(p *PartitionParams) *model.Query { return &p.Query }),
	flags(func(p *PartitionParams) *model.Query { return &p.Query }),
)

// GetPartition shows one partition.
var GetPartition = declare(partitionParams, Endpoint{
	Method: http.MethodGet, Path: "partition/{partition_name}", ID: "get_partition",
	Doc: "Show one partition", Answer: Partitions, Missing: MissingIsError,
	About:   "The partition of that name, also a hidden one, in a list of one. Capitals make no difference where no two names differ by them alone. A name that no partition has is answered with 404 under /sched/; under /slurm/ with 200, an empty list and an error.",
	Returns: "The partition, in a list of one",
})
