package api

import (
	"strconv"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// This file shows a job's allocation as v0.0.40 does.

// byCore is the bit of CRType that is set if cores are the unit of allocation.
// If it is not set, processors are the unit.
const byCore = 4

var oldResources = schema.Object("job_res", func() schema.Fields[model.JobResources] {
	return schema.Fields[model.JobResources]{
		schema.F("nodes", schema.String, func(r *model.JobResources) *string { return &r.Nodes }, "Nodes of the job, as a host list"),
		schema.Show("allocated_cores", schema.Int32, func(r *model.JobResources) uint32 {
			if r.CRType&byCore != 0 {
				return r.NCPUs
			}
			return 0
		}, "Number of cores, if cores are the unit of allocation", schema.Count),
		schema.Show("allocated_cpus", schema.Int32, func(r *model.JobResources) uint32 {
			if r.CRType&byCore == 0 {
				return r.NCPUs
			}
			return 0
		}, "Number of processors, if processors are the unit of allocation", schema.Count),
		schema.Show("allocated_hosts", schema.Int32, func(r *model.JobResources) uint32 { return r.Hosts.Or(0) }, "Number of nodes", schema.Count),
		schema.Show("allocated_nodes", schema.Named("job_res_nodes", oldShares), func(r *model.JobResources) *model.JobResources { return r }, "Each node: sockets and cores by number"),
	}
})

// oldShares returns the type of the list of nodes in v0.0.40. In this version,
// the sockets of a node are not an array but one object. The names of its
// members are the sockets' numbers. The same applies to the cores of a socket.
// The documents of v0.0.40 don't describe this.
func oldShares() schema.Type[*model.JobResources] {
	return schema.Simple(&schema.Shape{Kind: "array"}, func(e schema.Encoder, r **model.JobResources) {
		e.BeginArray()
		for n := range shares(*r) {
			renderOldShare(e, n)
		}
		e.EndArray()
	}, nil)
}

func renderOldShare(e schema.Encoder, n *nodeShare) {
	e.BeginObject()
	e.Key("sockets")
	e.BeginObject()
	for _, s := range n.sockets {
		if !s.allocated() {
			continue
		}
		e.Key(strconv.Itoa(int(s.index)))
		e.BeginObject()
		e.Key("cores")
		e.BeginObject()
		for _, c := range s.cores {
			switch {
			case c.use&coreInUse != 0:
				e.Key(strconv.Itoa(int(c.index)))
				e.String("allocated_and_in_use")
			case c.use&coreAllocated != 0:
				e.Key(strconv.Itoa(int(c.index)))
				e.String("allocated")
			}
		}
		e.EndObject()
		e.EndObject()
	}
	e.EndObject()
	e.Key("nodename")
	e.String(n.name)
	e.Key("cpus_used")
	e.Uint(uint64(n.cpusUsed))
	e.Key("memory_used")
	e.Uint(n.memoryUse)
	e.Key("memory_allocated")
	e.Uint(n.memory)
	e.EndObject()
}

func (s *socketShare) allocated() bool {
	for _, c := range s.cores {
		if c.use != 0 {
			return true
		}
	}
	return false
}
