package api

import (
	"iter"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// The controller sends a job's allocation in compressed form. Consecutive nodes
// with the same layout of sockets and cores share one copy of this layout, and
// one bitmap describes the cores of all nodes. The API shows each node
// separately. The form in v0.0.40 differs from the form in later versions.

// jobResources returns the type of a job's allocation.
func jobResources() schema.Type[model.JobResources] { return jobResourcesType{} }

type jobResourcesType struct{}

func (jobResourcesType) forView(v schema.View) schema.Type[model.JobResources] {
	if v.Version < V41 {
		return oldResources
	}
	return newResources
}

func (t jobResourcesType) Shape(v schema.View) *schema.Shape {
	s := t.forView(v).Shape(v)
	s.Nullable = v.Version >= V41
	return s
}

// Renderer returns a function that writes an allocation. If the job has no
// allocation, the function writes null or, in v0.0.40, an empty object.
func (t jobResourcesType) Renderer(v schema.View) func(schema.Encoder, *model.JobResources) {
	render := t.forView(v).Renderer(v)
	return func(e schema.Encoder, r *model.JobResources) {
		switch {
		case r.Hosts.Set:
			render(e, r)
		case v.Version < V41:
			e.BeginObject()
			e.EndObject()
		default:
			e.Null()
		}
	}
}

func (jobResourcesType) Parser(schema.View) func(*schema.Report, *schema.Value, *model.JobResources) bool {
	return schema.Refuse[model.JobResources]
}

// selectTypes are the words for the units in which resources are allocated,
// such as cores.
var selectTypes = schema.Words("cr_type",
	schema.Part("CPU", uint16(7), 1),
	schema.Part("SOCKET", uint16(7), 2),
	schema.Part("CORE", uint16(7), 4),
	schema.Bit("BOARD", uint16(1)<<3),
	schema.Bit("MEMORY", uint16(1)<<4),
	schema.Bit("ONE_TASK_PER_CORE", uint16(1)<<8),
	schema.Bit("PACK_NODES", uint16(1)<<9),
	schema.Bit("CORE_DEFAULT_DIST_BLOCK", uint16(1)<<12),
	schema.Bit("LLN", uint16(1)<<14),
	schema.Bit("LINEAR", uint16(1)<<15, schema.Until(V43)),
	schema.Bit("LINEAR", uint16(1)<<5, schema.Since(V43)),
)

// selectParameters are the words that replace selectTypes from v0.0.45 on. The
// cluster's configuration uses the same words.
var selectParameters = schema.Words("select_type_param",
	schema.Part("NONE", ^uint16(0), 0),
	schema.Part("CR_CPU_MEMORY", uint16(0x17), 0x11),
	schema.Part("CR_CPU", uint16(0x17), 0x1),
	schema.Part("CR_CORE_MEMORY", uint16(0x17), 0x14),
	schema.Part("CR_CORE", uint16(0x17), 0x4),
	schema.Part("CR_SOCKET_MEMORY", uint16(0x17), 0x12),
	schema.Part("CR_SOCKET", uint16(0x17), 0x2),
	schema.Part("CR_MEMORY", uint16(0x17), 0x10),
	schema.Bit("CR_ONE_TASK_PER_CORE", uint16(0x100)),
	schema.Bit("CR_CORE_DEFAULT_DIST_BLOCK", uint16(0x1000)),
	schema.Bit("CR_NO_DIST_TOPO_BLOCK", uint16(0x800)),
	schema.Bit("CR_LLN", uint16(0x4000)),
	schema.Bit("CR_PACK_NODES", uint16(0x200)),
	schema.Bit("LL_SHARED_GRES", uint16(0x400)),
	schema.Bit("MULTIPLE_SHARING_GRES_PJ", uint16(0x8000)),
	schema.Bit("ENFORCE_BINDING_GRES", uint16(0x40)),
	schema.Bit("ONE_TASK_PER_SHARING_GRES", uint16(0x80)),
)

// nodeUses are words that describe how nodes are reserved for a job.
var nodeUses = schema.Words("node_cr_type",
	schema.Part("AVAILABLE", ^uint32(0), 0),
	schema.Part("ONE_ROW", ^uint32(0), 1),
	schema.Part("RESERVED", ^uint32(0), 64000),
)

// coreUse records whether a core is allocated to a job, and whether the job's
// steps use the core.
type coreUse uint8

const (
	coreAllocated coreUse = 1
	coreInUse     coreUse = 2
)

var coreUses = schema.Words("job_res_core_status",
	schema.Part("INVALID", ^coreUse(0), ^coreUse(0)),
	schema.Part("UNALLOCATED", ^coreUse(0), 0),
	schema.Bit("ALLOCATED", coreAllocated),
	schema.Bit("IN_USE", coreInUse),
)

var newResources = schema.Object("job_res", func() schema.Fields[model.JobResources] {
	return schema.Fields[model.JobResources]{
		schema.F("select_type", selectTypes.Type, func(r *model.JobResources) *uint16 { return &r.CRType }, "Unit of allocation", schema.Required(0), schema.Until(V45)),
		schema.F("select_type", selectParameters.Type, func(r *model.JobResources) *uint16 { return &r.CRType }, "Unit of allocation", schema.Required(0), schema.Since(V45)),
		schema.Group("nodes", "Nodes of the job", schema.Fields[model.JobResources]{
			schema.Show("count", schema.Int32, func(r *model.JobResources) uint32 { return r.Hosts.Or(0) }, "Number of nodes", schema.Count),
			schema.F("select_type", nodeUses.Type, func(r *model.JobResources) *uint32 { return &r.NodeReq }, "How the resources are reserved"),
			schema.F("list", schema.String, func(r *model.JobResources) *string { return &r.Nodes }, "Names of the nodes, as a host list"),
			schema.F("whole", intBool, func(r *model.JobResources) *uint8 { return &r.WholeNode }, "Whether whole nodes are allocated"),
			schema.Show("allocation", schema.Named("job_res_nodes", schema.StreamOf(nodeShareType.Type)), streamShares, "Allocation on each node"),
		}),
		schema.F("cpus", schema.Int32, func(r *model.JobResources) *uint32 { return &r.NCPUs }, "Number of processors", schema.Count, schema.Required(0)),
		schema.F("threads_per_core", rawNumber, func(r *model.JobResources) *uint16 { return &r.ThreadsPerCore }, "Number of threads used of each core", schema.Count, schema.Required(0)),
	}
})

// nodeShare is the part of a node that is allocated to a job.
type nodeShare struct {
	index             uint32
	name              string
	cpus, cpusUsed    uint16
	memory, memoryUse uint64
	sockets           []socketShare
}

type socketShare struct {
	index uint32
	cores []coreShare
}

type coreShare struct {
	index uint32
	use   coreUse
}

var nodeShareType = schema.Object("job_res_node", func() schema.Fields[nodeShare] {
	return schema.Fields[nodeShare]{
		schema.F("index", schema.Int32, func(n *nodeShare) *uint32 { return &n.index }, "Index of the node in the job", schema.Bare, schema.Required(0)),
		schema.F("name", schema.String, func(n *nodeShare) *string { return &n.name }, "Name of the node", schema.Required(0)),
		schema.Group("cpus", "Processors", schema.Fields[nodeShare]{
			schema.F("count", schema.Int32, func(n *nodeShare) *uint16 { return &n.cpus }, "Number of processors allocated to the job", schema.Count),
			schema.F("used", schema.Int32, func(n *nodeShare) *uint16 { return &n.cpusUsed }, "Number of processors used by the job's steps", schema.Count),
		}),
		schema.Group("memory", "Memory", schema.Fields[nodeShare]{
			schema.F("used", schema.Int64, func(n *nodeShare) *uint64 { return &n.memoryUse }, "Memory used by the job's steps", schema.Unit("MiB")),
			schema.F("allocated", schema.Int64, func(n *nodeShare) *uint64 { return &n.memory }, "Memory allocated to the job", schema.Unit("MiB")),
		}),
		schema.F("sockets", schema.Named("job_res_socket_array", schema.List(socketShareType.Type)), func(n *nodeShare) *[]socketShare { return &n.sockets }, "Sockets of the node", schema.Required(0)),
	}
})

var socketShareType = schema.Object("job_res_socket", func() schema.Fields[socketShare] {
	return schema.Fields[socketShare]{
		schema.F("index", schema.Int32, func(s *socketShare) *uint32 { return &s.index }, "Index of the socket in the node", schema.Bare, schema.Required(0)),
		schema.F("cores", schema.Named("job_res_core_array", schema.List(schema.Repeated(coreShareType.Type, 4*maxKeptCores, coreIndex))), func(s *socketShare) *[]coreShare { return &s.cores }, "Cores of the socket", schema.Required(0)),
	}
})

var coreShareType = schema.Object("job_res_core", func() schema.Fields[coreShare] {
	return schema.Fields[coreShare]{
		schema.F("index", schema.Int32, func(c *coreShare) *uint32 { return &c.index }, "Index of the core in the socket", schema.Bare, schema.Required(0)),
		schema.F("status", coreUses.Type, func(c *coreShare) *coreUse { return &c.use }, "Whether the core is allocated to the job, and whether the job's steps use it", schema.Required(0)),
	}
})

// maxKeptCores is the number of cores of a socket whose texts are kept.
const maxKeptCores = 128

// coreIndex returns a number for the core c, or -1 if its text is not kept.
func coreIndex(c *coreShare) int {
	if c.index >= maxKeptCores || c.use > coreAllocated|coreInUse {
		return -1
	}
	return int(c.index)<<2 | int(c.use)
}

// shares returns an iterator over the allocations on the nodes. The
// controller's numbers may contradict each other. Therefore shares stops after
// the last node name, replaces missing amounts with 0, and omits a socket if
// the bitmap does not contain all of its cores.
func shares(r *model.JobResources) iter.Seq[*nodeShare] {
	return func(yield func(*nodeShare) bool) {
		i, bit, kind, repeats := uint32(0), 0, 0, uint32(0)
		for name := range model.Hosts(r.Nodes) {
			if i >= r.Hosts.Or(0) {
				return
			}
			if kind < len(r.SockCoreRepCount) && repeats >= r.SockCoreRepCount[kind] {
				kind, repeats = kind+1, 0
			}
			repeats++
			n := &nodeShare{
				index: i, name: name,
				cpus: atOrZero(r.CPUs, i), cpusUsed: atOrZero(r.CPUsUsed, i),
				memory: atOrZero(r.MemoryAllocated, i), memoryUse: atOrZero(r.MemoryUsed, i),
			}
			if kind < len(r.SocketsPerNode) && kind < len(r.CoresPerSocket) {
				n.sockets, bit = sockets(r, int(r.SocketsPerNode[kind]), int(r.CoresPerSocket[kind]), bit)
			}
			if !yield(n) {
				return
			}
			i++
		}
	}
}

// sockets decodes the bits of one node in the core bitmaps. The bit argument is
// the index of the node's first bit. The second result is the index of the next
// node's first bit.
func sockets(r *model.JobResources, count, cores, bit int) ([]socketShare, int) {
	var list []socketShare
	for s := range count {
		if bit+cores > int(r.CoreBitmap.Len) || cores == 0 {
			break
		}
		socket := socketShare{index: uint32(s), cores: make([]coreShare, cores)}
		for c := range cores {
			var use coreUse
			if r.CoreBitmap.Has(bit) {
				use |= coreAllocated
			}
			if r.CoreBitmapUsed.Has(bit) {
				use |= coreInUse
			}
			socket.cores[c] = coreShare{uint32(c), use}
			bit++
		}
		list = append(list, socket)
	}
	return list, bit
}

func atOrZero[T any](list []T, i uint32) (zero T) {
	if i < uint32(len(list)) {
		return list[i]
	}
	return zero
}

func streamShares(r *model.JobResources) schema.Stream[nodeShare] {
	return func(each func(*nodeShare) error) error {
		for n := range shares(r) {
			if err := each(n); err != nil {
				return err
			}
		}
		return nil
	}
}
