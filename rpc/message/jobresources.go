package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// jobResources encodes or decodes a job's allocation (table job_resources). If
// noIndexes is set, a decoder skips the indexes of nodes.
func jobResources(c *codec.Codec, r *model.JobResources, noIndexes bool) {
	c.OptUint32("nhosts", &r.Hosts)
	if c.StopIf("nhosts == NO_VAL", !r.Hosts.Set) {
		return
	}
	c.Uint32("ncpus", &r.NCPUs)
	if c.Since(codec.V2411) {
		c.Uint32("next_step_node_inx", &r.NextStepNodeIndexes)
	}
	c.Uint32("node_req", &r.NodeReq)
	c.String("nodes", &r.Nodes)
	c.Uint8("whole_node", &r.WholeNode)
	c.Uint16("threads_per_core", &r.ThreadsPerCore)
	c.Uint16("cr_type", &r.CRType)
	c.Uint32s("cpu_array_reps", &r.CPUArrayReps)
	c.Uint16s("cpu_array_value", &r.CPUArrayValue)
	c.Uint16s("cpus", &r.CPUs)
	c.Uint16s("cpus_used", &r.CPUsUsed)
	c.Uint64s("memory_allocated", &r.MemoryAllocated)
	c.Uint64s("memory_used", &r.MemoryUsed)
	c.Uint16s("sockets_per_node", &r.SocketsPerNode)
	c.Uint16s("cores_per_socket", &r.CoresPerSocket)
	c.Uint32s("sock_core_rep_count", &r.SockCoreRepCount)
	c.Bitmap("core_bitmap", &r.CoreBitmap)
	c.Bitmap("core_bitmap_used", &r.CoreBitmapUsed)
	if c.Since(codec.V2405) && c.Until(codec.V2605) {
		c.SkipIf(noIndexes, func() { c.Bitmap("node_bitmap", &r.NodeBitmap) })
	}
	if c.Since(codec.V2605) {
		c.Uint32s("node_ranks", &r.NodeRanks)
	}
}

// multiCore encodes or decodes requirements for processors (table
// multi_core_data).
func multiCore(c *codec.Codec, m *model.MultiCore) {
	c.Uint8("flag", &m.Flag)
	if c.StopIf("flag == 0", m.Flag == 0) {
		return
	}
	c.OptUint16("boards_per_node", &m.BoardsPerNode)
	c.OptUint16("sockets_per_board", &m.SocketsPerBoard)
	c.OptUint16("sockets_per_node", &m.SocketsPerNode)
	c.OptUint16("cores_per_socket", &m.CoresPerSocket)
	c.OptUint16("threads_per_core", &m.ThreadsPerCore)
	c.OptUint16("ntasks_per_board", &m.NTasksPerBoard)
	c.OptUint16("ntasks_per_socket", &m.NTasksPerSocket)
	c.OptUint16("ntasks_per_core", &m.NTasksPerCore)
	c.OptUint16("plane_size", &m.PlaneSize)
}
