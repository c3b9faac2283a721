package api

import (
	"errors"
	"fmt"
	"math/bits"
	"net/http"
	"strconv"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// PartitionChange contains new values for the fields of a partition. If the
// partition does not exist, it is created.
type PartitionChange struct {
	model.PartitionUpdate
	NodeSets      string            // added to Nodes
	Exclusive     string            // "NODE", "USER", "TOPO", "NO" or "" if the request lacks it
	Oversubscribe model.Opt[uint16] // value for MaxShare
	PreemptGlobal bool              // whether the request has the mode of the cluster, which can't be set
}

type partitionField = schema.Field[PartitionChange]

// changedPartition returns the type of a PartitionChange. In documents, a
// PartitionChange has the same schema as a partition.
func changedPartition() schema.Type[PartitionChange] {
	return shaped[PartitionChange]{partitionChange, Partition.Shape}
}

// partitionChange declares the fields of a PartitionChange. A client may send
// all fields that a partition has in answers. Fields that a request can't
// change, such as totals, are ignored.
var partitionChange = schema.Change("partition_info", func() schema.Fields[PartitionChange] {
	return schema.Fields[PartitionChange]{
		schema.Group("nodes", "Nodes of the partition", []partitionField{
			schema.F("allowed_allocation", text, func(p *PartitionChange) *model.Text { return &p.AllowAllocNodes }, "Nodes from which users may submit jobs"),
			schema.F("configured", text, func(p *PartitionChange) *model.Text { return &p.Nodes }, "Names of the nodes, as a host list; ALL for all"),
			schema.Ignore[PartitionChange]("total", schema.Int32[int32], "Ignored: the controller counts them", schema.Count),
		}),
		schema.Group("accounts", "Access by account", []partitionField{
			schema.F("allowed", text, func(p *PartitionChange) *model.Text { return &p.AllowAccounts }, "Accounts that may use the partition; ALL for all"),
			schema.F("deny", text, func(p *PartitionChange) *model.Text { return &p.DenyAccounts }, "Accounts that may not use the partition"),
		}),
		schema.Group("groups", "Access by group", []partitionField{
			schema.F("allowed", text, func(p *PartitionChange) *model.Text { return &p.AllowGroups }, "Groups that may use the partition; ALL for all"),
		}),
		schema.Group("qos", "Qualities of service", []partitionField{
			schema.F("allowed", text, func(p *PartitionChange) *model.Text { return &p.AllowQOS }, "Qualities of service whose jobs may use the partition; ALL for all"),
			schema.F("deny", text, func(p *PartitionChange) *model.Text { return &p.DenyQOS }, "Qualities of service whose jobs may not use the partition"),
			schema.F("assigned", text, func(p *PartitionChange) *model.Text { return &p.QOS }, "Quality of service whose limits apply to the partition"),
		}),
		schema.F("alternate", text, func(p *PartitionChange) *model.Text { return &p.Alternate }, "Partition that gets new jobs while this one is down"),
		schema.Group("tres", "Trackable resources", []partitionField{
			schema.F("billing_weights", text, func(p *PartitionChange) *model.Text { return &p.BillingWeights }, "Weight of each resource in billing"),
			schema.Ignore[PartitionChange]("configured", schema.String, "Ignored: the controller determines it"),
		}),
		schema.Ignore[PartitionChange]("cluster", schema.String, "Ignored"),
		schema.Ignore[PartitionChange]("select_type", selectParameters.Type, "Ignored: the configuration sets it"),
		schema.Group("cpus", "Processors of the partition", []partitionField{
			schema.Set("task_binding", present(partitionBindings.Type), func(p *PartitionChange, n uint32) error { p.CPUBind = n; return checkBinding(n) }, "How tasks are bound to processors by default"),
			schema.Ignore[PartitionChange]("total", schema.Int32[int32], "Ignored: the controller counts them", schema.Count),
		}),
		schema.Group("defaults", "Defaults for jobs that request nothing else", append(
			partitionMemoryInput(func(p *PartitionChange) *model.Opt[uint64] { return &p.DefMemPerCPU }),
			schema.F("time", number, func(p *PartitionChange) *model.Opt[uint32] { return &p.DefaultTime }, "Time limit", schema.Unit("min")),
			schema.F("job", text, func(p *PartitionChange) *model.Text { return &p.JobDefaults }, "Other defaults, such as \"DefCpuPerGPU=2\""),
		)),
		schema.Set("flags", partitionFlags.Type, setPartitionFlags, "Flags to set; a word that ends with _CLEAR removes the flag, and other flags stay as they are"),
		schema.F("grace_time", plain, func(p *PartitionChange) *model.Opt[uint32] { return &p.GraceTime }, "Time between the notice to a job and its preemption", schema.Unit("s")),
		schema.Group("maximums", "Maximum values for jobs", append(
			partitionMemoryInput(func(p *PartitionChange) *model.Opt[uint64] { return &p.MaxMemPerCPU }),
			schema.F("cpus_per_node", number, func(p *PartitionChange) *model.Opt[uint32] { return &p.MaxCPUsPerNode }, "Maximum number of processors of a node that all jobs together may have", schema.Count),
			schema.F("cpus_per_socket", number, func(p *PartitionChange) *model.Opt[uint32] { return &p.MaxCPUsPerSocket }, "Maximum number of processors of a socket that all jobs together may have", schema.Count),
			schema.F("nodes", number, func(p *PartitionChange) *model.Opt[uint32] { return &p.MaxNodes }, "Maximum number of nodes of a job", schema.Count),
			schema.Ignore[PartitionChange]("shares", schema.Int32[int32], "Ignored: see partition.oversubscribe", schema.Bare, schema.Deprecated(V45), schema.Until(V46)),
			schema.Group("oversubscribe", "Sharing of resources between jobs", []partitionField{
				schema.Ignore[PartitionChange]("jobs", schema.Int32[int32], "Ignored: see partition.oversubscribe", schema.Count, schema.Deprecated(V45)),
				schema.Ignore[PartitionChange]("flags", oversubscription.Type, "Ignored: see partition.oversubscribe", schema.Deprecated(V45)),
			}, schema.Until(V46)),
			schema.F("time", number, func(p *PartitionChange) *model.Opt[uint32] { return &p.MaxTime }, "Time limit", schema.Unit("min")),
			schema.F("over_time_limit", number, func(p *PartitionChange) *model.Opt[uint16] { return &p.OverTimeLimit }, "Time by which a job may exceed its limit", schema.Unit("min")),
		)),
		schema.Group("minimums", "Minimum values for jobs", []partitionField{
			schema.F("nodes", plain, func(p *PartitionChange) *model.Opt[uint32] { return &p.MinNodes }, "Minimum number of nodes of a job", schema.Count),
		}),
		schema.F("name", schema.String, func(p *PartitionChange) *string { return &p.Name }, "Name of the partition; required"),
		schema.F("node_sets", schema.String, func(p *PartitionChange) *string { return &p.NodeSets }, "Node sets of the partition, in addition to nodes.configured"),
		schema.Set("preempt_mode", present(partitionPreemption.Type), setPreemption, "Action when a job of the partition is preempted; CLUSTER_GLOBAL is ignored, because only the configuration can set it"),
		schema.Group("priority", "Priority of the partition's jobs", []partitionField{
			schema.F("job_factor", plain, func(p *PartitionChange) *model.Opt[uint16] { return &p.PriorityJobFactor }, "Contribution to the priority of a job", schema.Bare),
			schema.F("tier", plain, func(p *PartitionChange) *model.Opt[uint16] { return &p.PriorityTier }, "Tier; jobs of partitions with a higher tier are scheduled first, and may preempt others", schema.Bare),
		}),
		schema.Group("timeouts", "Power saving; requests can't change it", []partitionField{
			schema.Ignore[PartitionChange]("resume", number[uint16], "Ignored: the configuration sets it", schema.Unit("s")),
			schema.Ignore[PartitionChange]("suspend", number[uint16], "Ignored: the configuration sets it", schema.Unit("s")),
		}),
		schema.F("topology", text, func(p *PartitionChange) *model.Text { return &p.Topology }, "Name of the topology that the partition uses"),
		schema.Group("partition", "State and sharing of the partition", []partitionField{
			schema.Set("state", present(partitionStates.Type), setPartitionState, "UP, DOWN (jobs wait), DRAIN (no new jobs are accepted) or INACTIVE (both)"),
			schema.Set("exclusive", schema.String, setExclusive, "Exclusive allocation of jobs: NODE, USER (nodes run jobs of one user), TOPO (a part of the topology) or NO"),
			schema.Set("oversubscribe", schema.String, setOversubscription, "Number of jobs that share a resource: NO, YES or FORCE; YES and FORCE may have a number, such as \"YES:4\""),
		}),
		schema.Ignore[PartitionChange]("suspend_time", number[uint32], "Ignored: the configuration sets it", schema.Unit("s")),
	}
})

// partitionMemoryInput returns the fields of partitionMemory for a request.
func partitionMemoryInput(at func(*PartitionChange) *model.Opt[uint64]) []partitionField {
	setWith := func(mark uint64) func(*PartitionChange, model.Opt[uint64]) error {
		return func(p *PartitionChange, o model.Opt[uint64]) error {
			switch {
			case o.Infinite:
				*at(p) = model.Some[uint64](0) // 0 means no limit
			case !o.Set:
			case at(p).Set:
				return errors.New("memory of a processor and memory of a node can't both be set")
			case o.Number&model.MemPerCPU != 0:
				return errors.New("out of range")
			default:
				*at(p) = model.Some(o.Number | mark)
			}
			return nil
		}
	}
	return []partitionField{
		schema.Ignore[PartitionChange]("memory_per_cpu", schema.Int64[int64], "Ignored: see the next two fields", schema.Unit("MiB"), schema.Deprecated(V45), schema.Until(V46)),
		schema.Set("partition_memory_per_cpu", number, setWith(model.MemPerCPU), "Memory of each processor", schema.Unit("MiB")),
		schema.Set("partition_memory_per_node", number, setWith(0), "Memory of each node; 0 for no limit", schema.Unit("MiB")),
	}
}

// setPartitionState sets the state. It refuses UNKNOWN, whose number means "not
// set", because the controller would then leave the state unchanged.
func setPartitionState(p *PartitionChange, n uint16) error {
	if n == model.NoVal16 {
		return errors.New("UNKNOWN can't be set")
	}
	p.StateUp = model.Some(n)
	return nil
}

// DefaultTooLong reports whether the time limit for jobs that request none
// exceeds the partition's time limit. The controller would ignore it without an
// error. The argument limit is the partition's time limit before the change; it
// is not set for a new partition, which has no limit.
func (p *PartitionChange) DefaultTooLong(limit model.Opt[uint32]) bool {
	if p.MaxTime != (model.Opt[uint32]{}) {
		limit = p.MaxTime
	}
	return limit.Set && !limit.Infinite && (p.DefaultTime.Infinite || p.DefaultTime.Set && p.DefaultTime.Number > limit.Number)
}

// setPreemption sets the action for preempted jobs. CLUSTER_GLOBAL can't be
// set, but every partition that has no action of its own shows it in answers.
// The controller would ignore two actions without an error.
func setPreemption(p *PartitionChange, n uint16) error {
	const actions uint16 = 0x1 | 0x2 | 0x8
	if n != model.NoVal16 && bits.OnesCount16(n&actions) > 1 {
		return errors.New("a partition has one of the actions SUSPEND, REQUEUE and CANCEL")
	}
	if p.PreemptGlobal = n == model.NoVal16; !p.PreemptGlobal {
		p.PreemptMode = model.Some(n)
	}
	return nil
}

// Clearing bits: if one of these is set, the controller clears the flag that is
// partitionClearShift bits lower. The flags of exclusive allocation have
// clearing bits of their own.
const (
	partitionClearShift              = 8
	partitionClear            uint32 = 0xbf00
	partitionNotExclusiveUser uint32 = 0x4000
	partitionNotExclusiveTopo uint32 = 0x20000
)

// setPartitionFlags sets the flags of a change. It refuses a list that sets a
// flag and also clears it, because the controller would ignore one of the two
// words.
func setPartitionFlags(p *PartitionChange, n uint32) error {
	if both := n & ((n & partitionClear) >> partitionClearShift); both != 0 {
		name := partitionFlags.Names(both)[0]
		return fmt.Errorf("%s and %s_CLEAR contradict each other", name, name)
	}
	p.Flags = n
	return nil
}

func setExclusive(p *PartitionChange, s string) error {
	switch word := strings.ToUpper(s); word {
	case "NODE", "USER", "TOPO", "NO":
		p.Exclusive = word
	case "NONE":
		p.Exclusive = "NO"
	default:
		return fmt.Errorf("expected NODE, USER, TOPO or NO, got %q", schema.Shorten(s))
	}
	return nil
}

func setOversubscription(p *PartitionChange, s string) error {
	word, count, counted := strings.Cut(strings.ToUpper(s), ":")
	jobs := uint64(4)
	if counted {
		var err error
		if jobs, err = strconv.ParseUint(count, 10, 15); err != nil || jobs == 0 {
			return fmt.Errorf("expected a number of jobs after the colon, got %q", schema.Shorten(s))
		}
	}
	switch {
	case word == "NO" && !counted:
		p.Oversubscribe = model.Some[uint16](1)
	case word == "YES":
		p.Oversubscribe = model.Some(uint16(jobs))
	case word == "FORCE":
		p.Oversubscribe = model.Some(uint16(jobs) | shareForced)
	default:
		return fmt.Errorf("expected NO, YES, FORCE, YES:n or FORCE:n, got %q", schema.Shorten(s))
	}
	return nil
}

// Update returns the change as the controller expects it. The share argument is
// the MaxShare of the partition before the change. It is not set if the request
// creates the partition.
//
// The controller shows "ALL" as the node sets of a partition with all nodes. Like
// slurmrestd, Update takes that for no node set, so that a partition can be sent
// back as it is shown.
func (p *PartitionChange) Update(share model.Opt[uint16]) *model.PartitionUpdate {
	u := p.PartitionUpdate
	switch {
	case p.NodeSets == "", strings.EqualFold(u.Nodes.String(), "ALL"), !u.Nodes.Empty() && strings.EqualFold(p.NodeSets, "ALL"):
	case u.Nodes.Empty():
		u.Nodes = model.Text(p.NodeSets)
	default:
		u.Nodes += "," + model.Text(p.NodeSets)
	}
	exclusive, share := p.sharing(share)
	u.Flags, u.MaxShare = u.Flags|exclusive, share
	return &u
}

// sharing returns the flags and the value of MaxShare for Exclusive and
// Oversubscribe. As scontrol does, it always sets or clears both flags of
// exclusive allocation: if a partition has both, slurmctld 24.11 to 26.05 sets
// every flag of the partition. MaxShare is 0 if jobs get whole nodes, so USER
// and NO replace a MaxShare of 0. The old argument is MaxShare before the
// change.
func (p *PartitionChange) sharing(old model.Opt[uint16]) (flags uint32, share model.Opt[uint16]) {
	share = p.Oversubscribe
	switch p.Exclusive {
	case "":
		return 0, share
	case "NODE":
		return partitionNotExclusiveUser | partitionNotExclusiveTopo, model.Some[uint16](0)
	case "TOPO":
		return partitionNotExclusiveUser | partitionExclusiveTopo, model.Some[uint16](0)
	case "USER":
		flags = partitionExclusiveUser | partitionNotExclusiveTopo
	default:
		flags = partitionNotExclusiveUser | partitionNotExclusiveTopo
	}
	if !share.Set && old.Or(1)&^shareForced == 0 {
		share = model.Some[uint16](1)
	}
	return flags, share
}

// OversubscribeIgnored reports whether Oversubscribe has no effect, because
// jobs get whole nodes.
func (p *PartitionChange) OversubscribeIgnored() bool {
	return p.Oversubscribe.Or(1) != 1 && (p.Exclusive == "NODE" || p.Exclusive == "TOPO")
}

// PartitionChanges is a request to create or change partitions.
type PartitionChanges struct{ Partitions []PartitionChange }

// PartitionChangesBody declares the fields of a PartitionChanges.
var PartitionChangesBody = schema.Object("openapi_partitions_mod_req", func() schema.Fields[PartitionChanges] {
	return append(schema.Fields[PartitionChanges]{
		schema.F("partitions", schema.Named("update_partition_msg_list", schema.List(changedPartition)), func(b *PartitionChanges) *[]PartitionChange { return &b.Partitions }, "The partitions", schema.Required(0)),
	}, ignoredEnvelope[PartitionChanges]()...)
})

// PostPartitions creates or changes partitions.
var PostPartitions = declare(scope.ClusterAdmin, noParams, Endpoint{
	Method: http.MethodPost, Path: "partitions/", ID: "post_partitions",
	Doc: "Create or change partitions", Request: PartitionChangesBody, Answer: Empty, Since: V45,
	Example:     `{"partitions": [{"name": "debug", "partition": {"state": ["UP"]}}]}`,
	Description: "Creates or changes one partition for each entry, in order. Only the fields in an entry are changed. If the controller refuses an entry, the next ones are still tried. The status is then that of the first refusal, errors has one entry for each refusal, and warnings name the partitions that were changed. Totals, timeouts, suspend_time, select_type, cluster and tres.configured have no effect. Changes last until the controller reads its configuration again. Requires administrator rights.",
	RequestDoc:  "The partitions",
	AnswerDoc:   "Only `meta`, `errors` and `warnings`: all partitions were created or changed",
})

type NamedPartitionParams struct{ Name string }

var namedPartitionParams = nameParams("partition_name", "partition", "Name of the partition",
	func(p *NamedPartitionParams) *string { return &p.Name })

var DeletePartition = declare(scope.ClusterAdmin, namedPartitionParams, Endpoint{
	Method: http.MethodDelete, Path: "partition/{partition_name}", ID: "delete_partition",
	Doc: "Delete a partition", Answer: Empty, Since: V45,
	Description: "Deletes the named partition until the controller reads its configuration again. A partition with jobs can't be deleted (409). Requires administrator rights. If the partition does not exist, the answer is 404.",
	AnswerDoc:   "Only `meta`, `errors` and `warnings`: the partition is deleted",
})
