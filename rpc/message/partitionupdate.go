package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// PartitionUpdate creates or changes a partition (table update_partition). The
// answer is an RC.
type PartitionUpdate struct{ model.PartitionUpdate }

// Walk encodes or decodes the fields in wire order.
func (m *PartitionUpdate) Walk(c *codec.Codec) {
	c.Text("allow_accounts", &m.AllowAccounts)
	c.Text("allow_alloc_nodes", &m.AllowAllocNodes)
	c.Text("allow_groups", &m.AllowGroups)
	c.Text("allow_qos", &m.AllowQOS)
	c.Text("alternate", &m.Alternate)
	c.Text("billing_weights_str", &m.BillingWeights)
	c.Uint32("cpu_bind", &m.CPUBind)
	c.OptUint64("def_mem_per_cpu", &m.DefMemPerCPU)
	c.OptUint32("default_time", &m.DefaultTime)
	c.Text("deny_accounts", &m.DenyAccounts)
	c.Text("deny_qos", &m.DenyQOS)
	if c.Until(codec.V2405) {
		c.Uint16In32("flags", &m.Flags)
	} else {
		c.Uint32("flags", &m.Flags)
	}
	c.Text("job_defaults_str", &m.JobDefaults)
	c.OptUint32("grace_time", &m.GraceTime)
	c.OptUint32("max_cpus_per_node", &m.MaxCPUsPerNode)
	if c.Since(codec.V2302) {
		c.OptUint32("max_cpus_per_socket", &m.MaxCPUsPerSocket)
	}
	c.OptUint64("max_mem_per_cpu", &m.MaxMemPerCPU)
	c.OptUint32("max_nodes", &m.MaxNodes)
	c.OptUint16("max_share", &m.MaxShare)
	c.OptUint32("max_time", &m.MaxTime)
	c.OptUint32("min_nodes", &m.MinNodes)
	c.String("name", &m.Name)
	c.Text("nodes", &m.Nodes)
	c.OptUint16("over_time_limit", &m.OverTimeLimit)
	c.OptUint16("preempt_mode", &m.PreemptMode)
	c.OptUint16("priority_job_factor", &m.PriorityJobFactor)
	c.OptUint16("priority_tier", &m.PriorityTier)
	c.Text("qos_char", &m.QOS)
	c.OptUint16("state_up", &m.StateUp)
	if c.Since(codec.V2505) {
		c.Text("topology_name", &m.Topology)
	}
}

// PartitionName is a request to delete a partition (table delete_partition).
// The answer is an RC.
type PartitionName struct{ Name string }

// Walk encodes or decodes the fields in wire order.
func (m *PartitionName) Walk(c *codec.Codec) { c.String("name", &m.Name) }
