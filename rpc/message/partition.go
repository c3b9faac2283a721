package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// PartitionInfoRequest requests all partitions (table partition_info_request).
type PartitionInfoRequest struct {
	LastUpdate model.Time // partitions are returned only if something changed after this time; if 0, always
	ShowFlags  uint16     // a model.Show
}

// Walk encodes or decodes the fields in wire order.
func (m *PartitionInfoRequest) Walk(c *codec.Codec) {
	c.Time("last_update", &m.LastUpdate)
	c.Uint16("show_flags", &m.ShowFlags)
}

// PartitionInfo answers PartitionInfoRequest (table partition_info_response).
type PartitionInfo struct {
	LastUpdate model.Time
	Partitions codec.Stream[model.Partition]
}

// Walk encodes or decodes the fields in wire order.
func (m *PartitionInfo) Walk(c *codec.Codec) {
	n := c.Count("record_count", m.Partitions.Size())
	c.Time("last_update", &m.LastUpdate)
	c.Loop("record_count", n, func(int) {
		codec.Next(c, "partitions", "partition_info_record", &m.Partitions, partition)
	})
}

// partition encodes or decodes one element of a PartitionInfo (table
// partition_info_record).
func partition(c *codec.Codec, p *model.Partition) {
	c.String("name", &p.Name)
	c.Uint32("cpu_bind", &p.CPUBind)
	c.Uint32("grace_time", &p.GraceTime)
	c.OptUint32("max_time", &p.MaxTime)
	c.OptUint32("default_time", &p.DefaultTime)
	c.OptUint32("max_nodes", &p.MaxNodes)
	c.Uint32("min_nodes", &p.MinNodes)
	c.Uint32("total_nodes", &p.TotalNodes)
	c.Uint32("total_cpus", &p.TotalCPUs)
	c.Uint64("def_mem_per_cpu", &p.DefMemPerCPU)
	c.OptUint32("max_cpus_per_node", &p.MaxCPUsPerNode)
	if c.Since(codec.V2302) {
		c.OptUint32("max_cpus_per_socket", &p.MaxCPUsPerSocket)
	}
	c.Uint64("max_mem_per_cpu", &p.MaxMemPerCPU)
	if c.Until(codec.V2405) {
		c.Uint16In32("flags", &p.Flags)
	}
	if c.Since(codec.V2405) {
		c.Uint32("flags", &p.Flags)
	}
	c.Uint16("max_share", &p.MaxShare)
	c.OptUint16("over_time_limit", &p.OverTimeLimit)
	c.Uint16("preempt_mode", &p.PreemptMode)
	c.Uint16("priority_job_factor", &p.PriorityJobFactor)
	c.Uint16("priority_tier", &p.PriorityTier)
	c.Uint16("state_up", &p.StateUp)
	c.Uint16("cr_type", &p.CRType)
	c.OptUint16("resume_timeout", &p.ResumeTimeout)
	c.OptUint16("suspend_timeout", &p.SuspendTimeout)
	c.OptUint32("suspend_time", &p.SuspendTime)
	c.String("allow_accounts", &p.AllowAccounts)
	c.String("allow_groups", &p.AllowGroups)
	c.String("allow_alloc_nodes", &p.AllowAllocNodes)
	c.String("allow_qos", &p.AllowQOS)
	c.String("qos_char", &p.QOS)
	c.String("alternate", &p.Alternate)
	c.String("deny_accounts", &p.DenyAccounts)
	c.String("deny_qos", &p.DenyQOS)
	c.String("nodes", &p.Nodes)
	c.String("nodesets", &p.NodeSets)
	c.Bitmap("node_inx", &p.NodeIndexes)
	c.String("billing_weights_str", &p.BillingWeights)
	if c.Since(codec.V2505) {
		c.String("topology_name", &p.Topology)
	}
	c.String("tres_fmt_str", &p.TRES)
	codec.List(c, "job_defaults_list", "job_defaults", &p.JobDefaults, jobDefault)
}

// jobDefault encodes or decodes a default value for jobs (table job_defaults).
func jobDefault(c *codec.Codec, d *model.JobDefault) {
	c.Uint16("type", &d.Type)
	c.Uint64("value", &d.Value)
}
