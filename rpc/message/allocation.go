package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// JobDescs submits the components of a heterogeneous job (table job_desc_list),
// as a batch job or as a request for resources.
type JobDescs struct{ Jobs []model.JobDesc }

// Walk encodes or decodes the fields in wire order.
func (m *JobDescs) Walk(c *codec.Codec) {
	n := c.Count16("cnt", len(m.Jobs))
	if c.StopIf("cnt == 0", n == 0) {
		return
	}
	loop(c, "cnt", n, &m.Jobs, func(c *codec.Codec, d *model.JobDesc) { codec.Record(c, "jobs", "job_desc", d, jobDesc) })
}

// Allocation answers a request for resources, or an AllocationInfoRequest
// (table resource_allocation_response).
type Allocation struct{ model.Allocation }

// Walk encodes or decodes the fields in wire order.
func (m *Allocation) Walk(c *codec.Codec) { allocation(c, &m.Allocation) }

func allocation(c *codec.Codec, a *model.Allocation) {
	c.String("account", &a.Account)
	if c.Until(codec.V2505) {
		c.String("alias_list", &a.AliasList)
	}
	c.String("batch_host", &a.BatchHost)
	c.Strings("environment", &a.Environment)
	c.Uint32("error_code", &a.ErrorCode)
	if c.Since(codec.V2302) {
		c.Uint32("gid", &a.GroupID)
		c.String("group_name", &a.GroupName)
	}
	c.String("job_submit_user_msg", &a.UserMessage)
	if c.Until(codec.V2511) {
		c.Uint32("job_id", &a.StepID.JobID)
	}
	c.Uint32("node_cnt", &a.NodeCount)
	if c.Until(codec.V2505) {
		var addrs []Addr
		var hasAddrs bool
		flag8(c, "has_node_addr", &hasAddrs)
		if c.If("has_node_addr", hasAddrs) {
			codec.Record(c, "node_addr", "addr_array", &addrs, addrArray)
		}
		c.EndIf()
	}
	c.String("node_list", &a.Nodes)
	c.Uint16("ntasks_per_board", &a.TasksPerBoard)
	c.Uint16("ntasks_per_core", &a.TasksPerCore)
	c.Uint16("ntasks_per_tres", &a.TasksPerTRES)
	c.Uint16("ntasks_per_socket", &a.TasksPerSocket)
	groups := uint32(len(a.CPUsPerNode))
	c.Uint32("num_cpu_groups", &groups)
	if c.If("num_cpu_groups > 0", groups > 0) {
		c.Uint16s("cpus_per_node", &a.CPUsPerNode)
		c.Uint32s("cpu_count_reps", &a.CPUCountReps)
	}
	c.EndIf()
	c.String("partition", &a.Partition)
	c.Uint64("pn_min_memory", &a.MinMemory)
	c.String("qos", &a.QOS)
	c.String("resv_name", &a.Reservation)
	if c.Until(codec.V2302) {
		c.Uint32("select_jobinfo_plugin_id", &a.SelectPlugin)
	}
	if c.Since(codec.V2511) {
		c.Uint16("segment_size", &a.SegmentSize)
		c.Uint16("start_protocol_ver", &a.ProtocolVersion)
		codec.Record(c, "step_id", "step_id", &a.StepID, stepID)
	}
	if c.Since(codec.V2302) {
		c.String("tres_per_node", &a.TRESPerNode)
	}
	if c.Since(codec.V2505) {
		c.String("tres_per_task", &a.TRESPerTask)
	}
	if c.Since(codec.V2302) {
		c.Uint32("uid", &a.UserID)
		c.String("user_name", &a.UserName)
	}
	var hasCluster bool
	flag8(c, "has_working_cluster", &hasCluster)
	if c.If("has_working_cluster", hasCluster) {
		codec.Record(c, "working_cluster_rec", "db_cluster_rec", new(model.Cluster), cluster)
	}
	c.EndIf()
}

// addrArray encodes or decodes the addresses of nodes (table addr_array). This
// project does not use them.
func addrArray(c *codec.Codec, list *[]Addr) {
	if c.Since(codec.V2505) {
		return
	}
	n := c.Count("count", len(*list))
	loop(c, "count", n, list, func(c *codec.Codec, a *Addr) { codec.Record(c, "addr", "addr", a, addr) })
}

// Allocations answers a request for the resources of a heterogeneous job (table
// het_job_allocation_response).
type Allocations struct{ Components []model.Allocation }

// Walk encodes or decodes the fields in wire order.
func (m *Allocations) Walk(c *codec.Codec) {
	n := c.Count16("cnt", len(m.Components))
	if c.StopIf("cnt == 0", n == 0) {
		return
	}
	loop(c, "cnt", n, &m.Components, func(c *codec.Codec, a *model.Allocation) {
		codec.Record(c, "allocations", "resource_allocation_response", a, allocation)
	})
}

// AllocationInfoRequest asks for the state of a request for resources (table
// job_alloc_info_request).
type AllocationInfoRequest struct {
	JobID   model.Opt[uint32]
	Cluster string // "" for the controller's own
}

// Walk encodes or decodes the fields in wire order.
func (m *AllocationInfoRequest) Walk(c *codec.Codec) {
	jobID(c, &m.JobID)
	c.String("req_cluster", &m.Cluster)
}

// CompleteAllocation releases resources (table complete_job_allocation). The
// answer is an RC.
type CompleteAllocation struct {
	JobID    model.Opt[uint32]
	ExitCode uint32 // 0xffffffff if the resources were never used
}

// Walk encodes or decodes the fields in wire order.
func (m *CompleteAllocation) Walk(c *codec.Codec) {
	jobID(c, &m.JobID)
	c.Uint32("job_rc", &m.ExitCode)
}
