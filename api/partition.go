package api

import (
	"fmt"
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
	schema.F("select_type", selectTypes.Type, func(p *model.Partition) *uint16 { return &p.CRType }, "What is allocated apart; empty for what the cluster does", schema.Since(V41), schema.Until(V45)),
	schema.F("select_type", selectParameters.Type, func(p *model.Partition) *uint16 { return &p.CRType }, "What is allocated apart; NONE for what the cluster does", schema.Since(V45)),
	schema.Group("cpus", "Its processors", []schema.Field[model.Partition]{
		schema.F("task_binding", schema.Int32, func(p *model.Partition) *uint32 { return &p.CPUBind }, "How tasks are bound to processors by default, as bits", schema.Bare, schema.Until(V45)),
		schema.F("task_binding", partitionBindings.Type, func(p *model.Partition) *uint32 { return &p.CPUBind }, "How tasks are bound to processors by default", schema.Since(V45)),
		schema.F("total", schema.Int32, func(p *model.Partition) *uint32 { return &p.TotalCPUs }, "Number of processors", schema.Count),
	}),
	schema.Group("defaults", "What jobs get that do not ask", append(
		partitionMemory(func(p *model.Partition) uint64 { return p.DefMemPerCPU }),
		schema.F("time", number, func(p *model.Partition) *model.Opt[uint32] { return &p.DefaultTime }, "Time limit", schema.Unit("min")),
		schema.Show("job", schema.String, func(*model.Partition) string { return "" }, "Nothing: it is always empty"),
	)),
	schema.F("flags", partitionFlags.Type, func(p *model.Partition) *uint32 { return &p.Flags }, "What else is true of it", schema.Since(V45)),
	schema.F("grace_time", schema.Int32, func(p *model.Partition) *uint32 { return &p.GraceTime }, "Time between the notice to a job and its preemption", schema.Unit("s")),
	schema.Group("maximums", "What jobs can have", append(
		partitionMemory(func(p *model.Partition) uint64 { return p.MaxMemPerCPU }),
		schema.F("cpus_per_node", number, func(p *model.Partition) *model.Opt[uint32] { return &p.MaxCPUsPerNode }, "Number of processors of a node that all jobs together can have", schema.Count),
		schema.F("cpus_per_socket", number, func(p *model.Partition) *model.Opt[uint32] { return &p.MaxCPUsPerSocket }, "Number of processors of a socket that all jobs together can have", schema.Count),
		schema.F("nodes", number, func(p *model.Partition) *model.Opt[uint32] { return &p.MaxNodes }, "Number of nodes of a job", schema.Count),
		schema.F("shares", schema.Int32, func(p *model.Partition) *uint16 { return &p.MaxShare }, "The members of oversubscribe in one: 32768 is force, added to the jobs", schema.Bare, schema.Until(V45)),
		schema.Show("shares", schema.Int32, noShare, "Always 0: see partition.oversubscribe", schema.Bare, schema.Since(V45), schema.Deprecated(V45)),
		schema.Group("oversubscribe", "Jobs beside each other", []schema.Field[model.Partition]{
			schema.Show("jobs", schema.Int32, func(p *model.Partition) uint16 { return p.MaxShare &^ shareForced }, "Number of jobs that share a resource", schema.Count, schema.Until(V45)),
			schema.Show("jobs", schema.Int32, noShare, "Always 0: see partition.oversubscribe", schema.Bare, schema.Since(V45), schema.Deprecated(V45)),
			schema.F("flags", oversubscription.Type, func(p *model.Partition) *uint16 { return &p.MaxShare }, "force: whatever the jobs ask for", schema.Until(V45)),
			schema.Show("flags", oversubscription.Type, noShare, "Always empty: see partition.oversubscribe", schema.Since(V45), schema.Deprecated(V45)),
		}),
		schema.F("time", number, func(p *model.Partition) *model.Opt[uint32] { return &p.MaxTime }, "Time limit", schema.Unit("min")),
		schema.F("over_time_limit", number, func(p *model.Partition) *model.Opt[uint16] { return &p.OverTimeLimit }, "Time by which a job may exceed its limit", schema.Unit("min")),
	)),
	schema.Group("minimums", "What jobs must have", []schema.Field[model.Partition]{
		schema.F("nodes", schema.Int32, func(p *model.Partition) *uint32 { return &p.MinNodes }, "Number of nodes of a job", schema.Count),
	}),
	schema.F("name", schema.String, func(p *model.Partition) *string { return &p.Name }, "Name of the partition"),
	schema.F("node_sets", schema.String, func(p *model.Partition) *string { return &p.NodeSets }, "Sets of nodes that it is made of"),
	schema.F("preempt_mode", partitionPreemption.Type, func(p *model.Partition) *uint16 { return &p.PreemptMode }, "What happens to its jobs when others preempt them; CLUSTER_GLOBAL for what the cluster does", schema.Since(V45)),
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
		schema.Show("exclusive", schema.String, exclusivePartition, "What its jobs have alone: NODE, USER (nodes run jobs of one user), TOPO (a part of the topology) or NO", schema.Since(V45)),
		schema.Show("oversubscribe", schema.String, oversubscribedPartition, "How many jobs share a resource, as \"YES:4\", or \"FORCE:4\" if jobs have no choice; NO for one", schema.Since(V45)),
	}),
	schema.F("suspend_time", number, func(p *model.Partition) *model.Opt[uint32] { return &p.SuspendTime }, "Idle time after which a node is powered down; not set for what the cluster has", schema.Unit("s")),
)

// partitionMemory are the three ways to say an amount of memory, of a processor or of a node. In the
// first the mark that tells which is the sign, as 64 bits with a sign have it.
func partitionMemory(amount func(*model.Partition) uint64) []schema.Field[model.Partition] {
	return []schema.Field[model.Partition]{
		schema.Show("memory_per_cpu", schema.Int64, func(p *model.Partition) int64 { return int64(amount(p)) }, "Memory of a node; below zero it is that of a processor, with the greatest power of two added", schema.Unit("MiB"), schema.Until(V45)),
		schema.Show("memory_per_cpu", schema.Int64, func(*model.Partition) int64 { return 0 }, "Always 0: see the two fields that follow", schema.Unit("MiB"), schema.Since(V45), schema.Deprecated(V45)),
		schema.Show("partition_memory_per_cpu", number, func(p *model.Partition) model.Opt[uint64] { return memoryPerCPU(amount(p)) }, "Memory of each processor", schema.Unit("MiB")),
		schema.Show("partition_memory_per_node", number, func(p *model.Partition) model.Opt[uint64] { return memoryPerNode(amount(p)) }, "Memory of each node; 0 for no limit", schema.Unit("MiB")),
	}
}

// shareForced in a MaxShare: jobs share whether they like it or not.
const shareForced uint16 = 0x8000

// noShare is the value of fields that v0.0.45 keeps but no longer fills.
func noShare(*model.Partition) uint16 { return 0 }

// exclusivePartition returns the word for what jobs of a partition have alone.
func exclusivePartition(p *model.Partition) string {
	switch {
	case p.Flags&partitionExclusiveTopo != 0:
		return "TOPO"
	case p.MaxShare&^shareForced == 0:
		return "NODE"
	case p.Flags&partitionExclusiveUser != 0:
		return "USER"
	}
	return "NO"
}

// oversubscribedPartition returns how many jobs share a resource of a
// partition, as partition configurations write it.
func oversubscribedPartition(p *model.Partition) string {
	jobs := p.MaxShare &^ shareForced
	switch {
	case jobs == 0:
		return "NO"
	case p.MaxShare&shareForced != 0:
		return fmt.Sprintf("FORCE:%d", jobs)
	case jobs == 1:
		return "NO"
	}
	return fmt.Sprintf("YES:%d", jobs)
}

// Bits of a partition's flags that have no word of their own.
const (
	partitionExclusiveUser uint32 = 0x40
	partitionExclusiveTopo uint32 = 0x10000
)

// partitionFlags are the words of a partition's flags. Those with CLEAR are for
// changes and take back the flag of that name.
var partitionFlags = schema.Words("partition_flags",
	schema.Bit("DEFAULT", uint32(0x1)),
	schema.Bit("HIDDEN", uint32(0x2)),
	schema.Bit("NO_ROOT", uint32(0x4)),
	schema.Bit("ROOT_ONLY", uint32(0x8)),
	schema.Bit("REQ_RESV", uint32(0x10)),
	schema.Bit("LLN", uint32(0x20)),
	schema.Bit("PDOI", uint32(0x80)),
	schema.Bit("DEFAULT_CLEAR", uint32(0x100)),
	schema.Bit("HIDDEN_CLEAR", uint32(0x200)),
	schema.Bit("NO_ROOT_CLEAR", uint32(0x400)),
	schema.Bit("ROOT_ONLY_CLEAR", uint32(0x800)),
	schema.Bit("REQ_RESV_CLEAR", uint32(0x1000)),
	schema.Bit("LLN_CLEAR", uint32(0x2000)),
	schema.Bit("PDOI_CLEAR", uint32(0x8000)),
)

// partitionPreemption are the words for what preemption does to jobs.
var partitionPreemption = schema.Words("partition_preempt_modes",
	schema.Part("CLUSTER_GLOBAL", ^uint16(0), 0xfffe, schema.Alone),
	schema.Part("DISABLED", ^uint16(0), 0),
	schema.Bit("SUSPEND", uint16(0x1)),
	schema.Bit("REQUEUE", uint16(0x2)),
	schema.Bit("CANCEL", uint16(0x8)),
	schema.Bit("PRIORITY", uint16(0x2000)),
)

// partitionBindings are the words for how tasks are bound to processors unless
// their job says otherwise.
var partitionBindings = schema.Words("node_partition_cpu_binding_flags",
	schema.Part("CPU_BIND_TO_THREADS", uint32(0x1e), 0x2),
	schema.Part("CPU_BIND_TO_CORES", uint32(0x1e), 0x4),
	schema.Part("CPU_BIND_TO_SOCKETS", uint32(0x1e), 0x8),
	schema.Part("CPU_BIND_TO_LDOMS", uint32(0x1e), 0x10),
	schema.Part("CPU_BIND_NONE", uint32(0xfe0), 0x20),
	schema.Part("CPU_BIND_OFF", uint32(0xc0000), 0x80000),
	schema.Bit("VERBOSE", uint32(0x1)),
)

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
