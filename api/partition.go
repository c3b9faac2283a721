package api

import (
	"errors"
	"fmt"
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// Partition declares the fields of a partition: a queue of jobs, and the nodes
// that run them.
var Partition = schema.Object("partition_info", func() schema.Fields[model.Partition] {
	return schema.Fields[model.Partition]{
		schema.Group("nodes", "Nodes of the partition", schema.Fields[model.Partition]{
			schema.F("allowed_allocation", schema.String, func(p *model.Partition) *string { return &p.AllowAllocNodes }, "Nodes from which users may submit jobs; empty for all"),
			schema.F("configured", schema.String, func(p *model.Partition) *string { return &p.Nodes }, "Names of the nodes, as a host list"),
			schema.F("total", schema.Int32, func(p *model.Partition) *uint32 { return &p.TotalNodes }, "Number of nodes", schema.Count),
		}),
		schema.Group("accounts", "Access by account", schema.Fields[model.Partition]{
			schema.F("allowed", schema.String, func(p *model.Partition) *string { return &p.AllowAccounts }, "Allowed accounts; empty for all"),
			schema.F("deny", schema.String, func(p *model.Partition) *string { return &p.DenyAccounts }, "Denied accounts"),
		}),
		schema.Group("groups", "Access by group", schema.Fields[model.Partition]{
			schema.F("allowed", schema.String, func(p *model.Partition) *string { return &p.AllowGroups }, "Allowed groups; empty for all"),
		}),
		schema.Group("qos", "Qualities of service", schema.Fields[model.Partition]{
			schema.F("allowed", schema.String, func(p *model.Partition) *string { return &p.AllowQOS }, "Allowed QOS; empty for all"),
			schema.F("deny", schema.String, func(p *model.Partition) *string { return &p.DenyQOS }, "Denied QOS"),
			schema.F("assigned", schema.String, func(p *model.Partition) *string { return &p.QOS }, "QOS whose limits apply"),
		}),
		schema.F("alternate", schema.String, func(p *model.Partition) *string { return &p.Alternate }, "Partition that gets new jobs while this one is down"),
		schema.Group("tres", "Trackable resources", schema.Fields[model.Partition]{
			schema.F("billing_weights", schema.String, func(p *model.Partition) *string { return &p.BillingWeights }, "Weight of each resource in billing"),
			schema.F("configured", schema.String, func(p *model.Partition) *string { return &p.TRES }, "Amount of each resource"),
		}),
		schema.Show("cluster", schema.String, func(*model.Partition) string { return "" }, "Cluster of the partition, if it is another cluster of a federation"),
		schema.F("select_type", selectTypes.Type, func(p *model.Partition) *uint16 { return &p.CRType }, "Unit of allocation; empty for the cluster's default", schema.Since(V41), schema.Until(V45)),
		schema.F("select_type", selectParameters.Type, func(p *model.Partition) *uint16 { return &p.CRType }, "Unit of allocation; NONE for the cluster's default", schema.Since(V45)),
		schema.Group("cpus", "Processors of the partition", schema.Fields[model.Partition]{
			schema.F("task_binding", schema.Int32, func(p *model.Partition) *uint32 { return &p.CPUBind }, "How tasks are bound to processors by default, as bits", schema.Bare, schema.Until(V45)),
			schema.F("task_binding", partitionBindings.Type, func(p *model.Partition) *uint32 { return &p.CPUBind }, "How tasks are bound to processors by default", schema.Since(V45)),
			schema.F("total", schema.Int32, func(p *model.Partition) *uint32 { return &p.TotalCPUs }, "Number of processors", schema.Count),
		}),
		schema.Group("defaults", "Defaults for jobs", append(
			partitionMemory(func(p *model.Partition) uint64 { return p.DefMemPerCPU }),
			schema.F("time", number, func(p *model.Partition) *model.Opt[uint32] { return &p.DefaultTime }, "Time limit", schema.Unit("min")),
			schema.Show("job", schema.String, func(*model.Partition) string { return "" }, "Always empty"),
		)),
		schema.F("flags", partitionFlags.Type, func(p *model.Partition) *uint32 { return &p.Flags }, "Flags of the partition", schema.Since(V45)),
		schema.F("grace_time", schema.Int32, func(p *model.Partition) *uint32 { return &p.GraceTime }, "Time between the notice to a job and its preemption", schema.Unit("s")),
		schema.Group("maximums", "Limits for jobs", append(
			partitionMemory(func(p *model.Partition) uint64 { return p.MaxMemPerCPU }),
			schema.F("cpus_per_node", number, func(p *model.Partition) *model.Opt[uint32] { return &p.MaxCPUsPerNode }, "Maximum number of processors of a node that all jobs together may have", schema.Count),
			schema.F("cpus_per_socket", number, func(p *model.Partition) *model.Opt[uint32] { return &p.MaxCPUsPerSocket }, "Maximum number of processors of a socket that all jobs together may have", schema.Count),
			schema.F("nodes", number, func(p *model.Partition) *model.Opt[uint32] { return &p.MaxNodes }, "Maximum number of nodes of a job", schema.Count),
			schema.F("shares", schema.Int32, func(p *model.Partition) *uint16 { return &p.MaxShare }, "Number of jobs that may share a resource, plus 32768 if jobs can't avoid sharing", schema.Bare, schema.Until(V45)),
			schema.Show("shares", schema.Int32, noShare, "Always 0: see partition.oversubscribe", schema.Bare, schema.Since(V45), schema.Deprecated(V45), schema.Until(V46)),
			schema.Group("oversubscribe", "Number of jobs that may share a resource", schema.Fields[model.Partition]{
				schema.Show("jobs", schema.Int32, func(p *model.Partition) uint16 { return p.MaxShare &^ shareForced }, "Number of jobs that may share a resource", schema.Count, schema.Until(V45)),
				schema.Show("jobs", schema.Int32, noShare, "Always 0: see partition.oversubscribe", schema.Bare, schema.Since(V45), schema.Deprecated(V45)),
				schema.F("flags", oversubscription.Type, func(p *model.Partition) *uint16 { return &p.MaxShare }, "The word force if jobs can't avoid sharing", schema.Until(V45)),
				schema.Show("flags", oversubscription.Type, noShare, "Always empty: see partition.oversubscribe", schema.Since(V45), schema.Deprecated(V45)),
			}, schema.Until(V46)),
			schema.F("time", number, func(p *model.Partition) *model.Opt[uint32] { return &p.MaxTime }, "Time limit", schema.Unit("min")),
			schema.F("over_time_limit", number, func(p *model.Partition) *model.Opt[uint16] { return &p.OverTimeLimit }, "Time by which a job may exceed its limit", schema.Unit("min")),
		)),
		schema.Group("minimums", "Requirements for jobs", schema.Fields[model.Partition]{
			schema.F("nodes", schema.Int32, func(p *model.Partition) *uint32 { return &p.MinNodes }, "Minimum number of nodes of a job", schema.Count),
		}),
		schema.F("name", schema.String, func(p *model.Partition) *string { return &p.Name }, "Name of the partition"),
		schema.F("node_sets", schema.String, func(p *model.Partition) *string { return &p.NodeSets }, "Node sets of the partition"),
		schema.F("preempt_mode", partitionPreemption.Type, func(p *model.Partition) *uint16 { return &p.PreemptMode }, "Action when a job of the partition is preempted; CLUSTER_GLOBAL for the cluster's default", schema.Since(V45)),
		schema.Group("priority", "Priority of the partition's jobs", schema.Fields[model.Partition]{
			schema.F("job_factor", schema.Int32, func(p *model.Partition) *uint16 { return &p.PriorityJobFactor }, "Contribution to the priority of a job", schema.Bare),
			schema.F("tier", schema.Int32, func(p *model.Partition) *uint16 { return &p.PriorityTier }, "Tier; jobs of partitions with a higher tier are scheduled first, and may preempt others", schema.Bare),
		}),
		schema.Group("timeouts", "Time limits of power saving; not set for the cluster's default", schema.Fields[model.Partition]{
			schema.F("resume", number, func(p *model.Partition) *model.Opt[uint16] { return &p.ResumeTimeout }, "Time limit for a node to become ready after it was powered up", schema.Unit("s")),
			schema.F("suspend", number, func(p *model.Partition) *model.Opt[uint16] { return &p.SuspendTimeout }, "Time limit for a node to turn off after it was powered down", schema.Unit("s")),
		}),
		schema.F("topology", schema.String, func(p *model.Partition) *string { return &p.Topology }, "Name of the topology that the partition uses", schema.Since(V43)),
		schema.Group("partition", "State and sharing of the partition", schema.Fields[model.Partition]{
			schema.F("state", partitionStates.Type, func(p *model.Partition) *uint16 { return &p.StateUp }, "UP, DOWN (jobs wait), DRAIN (no new jobs are accepted) or INACTIVE (both)"),
			schema.Show("exclusive", schema.String, exclusivePartition, "Exclusive allocation of jobs: NODE, USER (nodes run jobs of one user), TOPO (a part of the topology) or NO", schema.Since(V45)),
			schema.Show("oversubscribe", schema.String, oversubscribedPartition, "Number of jobs that share a resource, such as \"YES:4\", or \"FORCE:4\" if jobs have no choice; NO for one", schema.Since(V45)),
		}),
		schema.F("suspend_time", number, func(p *model.Partition) *model.Opt[uint32] { return &p.SuspendTime }, "Idle time after which a node is powered down; not set for the cluster's default", schema.Unit("s")),
	}
})

// partitionMemory returns the fields for an amount of memory, which is either
// per CPU or per node. partition_memory_per_cpu contains an amount per CPU, and
// partition_memory_per_node an amount per node. Before v0.0.45, memory_per_cpu
// contains either kind of amount, and a negative value means an amount per CPU.
func partitionMemory(amount func(*model.Partition) uint64) schema.Fields[model.Partition] {
	return schema.Fields[model.Partition]{
		schema.Show("memory_per_cpu", schema.Int64, func(p *model.Partition) int64 { return int64(amount(p)) }, "Memory of a node; if negative, add 2^63 to get the memory of a processor", schema.Unit("MiB"), schema.Until(V45)),
		schema.Show("memory_per_cpu", schema.Int64, func(*model.Partition) int64 { return 0 }, "Always 0: see the next two fields", schema.Unit("MiB"), schema.Since(V45), schema.Deprecated(V45), schema.Until(V46)),
		schema.Show("partition_memory_per_cpu", number, func(p *model.Partition) model.Opt[uint64] { return memoryPerCPU(amount(p)) }, "Memory of each processor", schema.Unit("MiB")),
		schema.Show("partition_memory_per_node", number, func(p *model.Partition) model.Opt[uint64] { return memoryPerNode(amount(p)) }, "Memory of each node; 0 for no limit", schema.Unit("MiB")),
	}
}

// shareForced is the bit of MaxShare that is set if jobs can't refuse to share
// resources (OverSubscribe=FORCE).
const shareForced uint16 = 0x8000

// noShare returns 0, the value of fields that still exist in v0.0.45, but no
// longer have a meaning.
func noShare(*model.Partition) uint16 { return 0 }

// exclusivePartition returns the word, such as NODE, for the resources that a
// job in the partition gets exclusively.
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

// oversubscribedPartition returns how many jobs may share a resource of the
// partition, in the format of the configuration option OverSubscribe.
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

// These flags of a partition are not in partitionFlags, because other fields
// show them.
const (
	partitionExclusiveUser uint32 = 0x40
	partitionExclusiveTopo uint32 = 0x10000
)

// partitionFlags are the names of a partition's flags. Names that end with
// _CLEAR are only for changes: HIDDEN_CLEAR, for example, clears the flag
// HIDDEN.
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

// partitionPreemption are words that describe what happens to preempted jobs.
var partitionPreemption = schema.Words("partition_preempt_modes",
	schema.Part("CLUSTER_GLOBAL", ^uint16(0), 0xfffe, schema.Alone),
	schema.Part("DISABLED", ^uint16(0), 0),
	schema.Bit("SUSPEND", uint16(0x1)),
	schema.Bit("REQUEUE", uint16(0x2)),
	schema.Bit("CANCEL", uint16(0x8)),
	schema.Bit("PRIORITY", uint16(0x2000)),
)

// partitionBindings are the words that say how tasks are bound to processors if
// a job does not specify a binding.
var partitionBindings = schema.Words("node_partition_cpu_binding_flags",
	schema.Part("CPU_BIND_TO_THREADS", uint32(0x1e), 0x2),
	schema.Part("CPU_BIND_TO_CORES", uint32(0x1e), 0x4),
	schema.Part("CPU_BIND_TO_SOCKETS", uint32(0x1e), 0x8),
	schema.Part("CPU_BIND_TO_LDOMS", uint32(0x1e), 0x10),
	schema.Part("CPU_BIND_NONE", uint32(0xfe0), 0x20),
	schema.Part("CPU_BIND_OFF", uint32(0xc0000), 0x80000),
	schema.Bit("VERBOSE", uint32(0x1)),
)

// checkBinding returns an error unless the bits of n are one of
// partitionBindings, with or without VERBOSE. Slurm's commands permit nothing
// else, and slurmctld writes the names of all bits into a buffer of limited
// size: a number with many bits makes slurmctld 26.05 crash.
func checkBinding(n uint32) error {
	switch n &^ 0x1 {
	case 0, 0x2, 0x4, 0x8, 0x10, 0x20, 0x80000:
		return nil
	}
	return errors.New("expected one binding: 2 (threads), 4 (cores), 8 (sockets), 16 (NUMA domains), 32 (none) or 524288 (off); add 1 for verbose")
}

var oversubscription = schema.Words("oversubscribe_flags", schema.Bit("force", shareForced))

// partitionStates are the words for a partition's state. Bit 0 means that jobs
// may be submitted, and bit 1 that jobs may start.
var partitionStates = schema.Words("partition_states",
	schema.Part("INACTIVE", ^uint16(0), 0),
	schema.Part("UNKNOWN", ^uint16(0), ^uint16(0)-1),
	schema.Part("UP", ^uint16(0), 3),
	schema.Part("DOWN", ^uint16(0), 1),
	schema.Part("DRAIN", ^uint16(0), 2),
)

// PartitionsAnswer is an answer with partitions. LastUpdate is valid only after
// all partitions have been read from the stream.
type PartitionsAnswer struct {
	Partitions schema.Stream[model.Partition]
	LastUpdate model.Time
	Envelope
}

// Partitions declares the fields of a PartitionsAnswer.
var Partitions = enveloped("openapi_partition_resp", func(a *PartitionsAnswer) *Envelope { return &a.Envelope },
	schema.F("partitions", schema.Named("partition_info_msg", schema.StreamOf(Partition.Type)), func(a *PartitionsAnswer) *schema.Stream[model.Partition] { return &a.Partitions }, "The partitions", schema.Required(0)),
	schema.F("last_update", moment, func(a *PartitionsAnswer) *model.Time { return &a.LastUpdate }, "Time of the last change of any object in the list", schema.Unit(UnixTime), schema.Required(0)),
)

// PartitionListParams are the parameters of GetPartitions.
type PartitionListParams struct {
	model.Query
	HostFilter
}

// partitionListParams are the parameters of a list that by default omits hidden
// records.
var partitionListParams = schema.Object("", func() schema.Fields[PartitionListParams] {
	return append(schema.Fields[PartitionListParams]{
		updateTime(func(p *PartitionListParams) *model.Query { return &p.Query }),
		flagsWithDefault("no hidden records", func(p *PartitionListParams) *model.Query { return &p.Query }),
	}, hostFilterFields(func(p *PartitionListParams) *HostFilter { return &p.HostFilter })...)
})

// GetPartitions lists the partitions.
var GetPartitions = declare(scope.ComputeRead, partitionListParams, Endpoint{
	Method: http.MethodGet, Path: "partitions/", ID: "get_partitions", Paged: true, Collection: "partitions",
	Doc: "List the partitions", Answer: Partitions,
	Description: "Returns the partitions that the user may use, in the controller's order. The flag ALL adds hidden partitions and those of other users.",
	AnswerDoc:   "The partitions",
})

type PartitionParams struct {
	Name string
	model.Query
}

var partitionParams = schema.Object("", func() schema.Fields[PartitionParams] {
	return schema.Fields[PartitionParams]{
		schema.F("partition_name", schema.String, func(p *PartitionParams) *string { return &p.Name }, "Name of the partition", schema.Required(0)),
		updateTime(func(p *PartitionParams) *model.Query { return &p.Query }),
		flags(func(p *PartitionParams) *model.Query { return &p.Query }),
	}
})

var GetPartition = declare(scope.ComputeRead, partitionParams, Endpoint{
	Method: http.MethodGet, Path: "partition/{partition_name}", ID: "get_partition",
	Doc: "Show one partition", Answer: Partitions,
	Description: "Returns the partition with this name, even a hidden one, in a list. The name is not case-sensitive unless two names differ only in case.",
	AnswerDoc:   "The partition, in a list",
})
