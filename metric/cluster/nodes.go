package cluster

import (
	"math/bits"
	"sync"

	"schedrestd/internal/errs"
	"schedrestd/metric/exposition"
	"schedrestd/model"
)

// nodeStates are the states by which nodes are counted. A node is counted for
// every state in this list that applies to it. Exactly one of a node's states
// is a base state (nodeBase). The partition field is the state's name in the
// metrics of partitions. It is "" if the name is the same as in other metrics.
var nodeStates = []struct {
	name, partition, help string
	is                    func(model.NodeState) bool
}{
	{"alloc", "", "Nodes with all CPUs allocated.", nodeBase(model.NodeAllocated)},
	{"mixed", "", "Nodes with some CPUs allocated.", nodeBase(model.NodeMixed)},
	{"idle", "", "Nodes without a job.", nodeBase(model.NodeIdle)},
	{"down", "", "Nodes that are down.", nodeBase(model.NodeDown)},
	{"future", "", "Nodes that are defined for future use.", nodeBase(model.NodeFuture)},
	{"unknown", "", "Nodes that have not registered yet.", nodeBase(model.NodeUnknown)},
	{"drain", "", "Drained nodes: they get no new jobs and have none.", isDrained},
	{"drained", "", "Drained nodes: they get no new jobs and have none.", isDrained},
	{"draining", "", "Draining nodes: they get no new jobs and still have some.", isDraining},
	{"completing", "cg", "Nodes on which jobs are being ended.", nodeFlag(model.NodeCompleting)},
	{"blocked", "", "Nodes that are blocked by a job with exclusive topology.", nodeFlag(model.NodeBlocked)},
	{"cloud", "", "Nodes in a cloud.", nodeFlag(model.NodeCloud)},
	{"dyn_future", "", "Dynamic nodes that replaced a node in the state FUTURE.", nodeFlag(model.NodeDynamicFuture)},
	{"dyn_normal", "", "Dynamic nodes.", nodeFlag(model.NodeDynamicNorm)},
	{"external", "", "Nodes that another program manages.", nodeFlag(model.NodeExternal)},
	{"fail", "", "Nodes that are failing.", nodeFlag(model.NodeFail)},
	{"invalid_reg", "", "Nodes whose registration was refused.", nodeFlag(model.NodeInvalidReg)},
	{"maint", "", "Nodes in a reservation for maintenance.", nodeFlag(model.NodeMaint)},
	{"noresp", "no_resp", "Nodes that do not respond.", nodeFlag(model.NodeNotResponding)},
	{"planned", "", "Nodes that are planned for a job.", nodeFlag(model.NodePlanned)},
	{"power_down", "", "Nodes that are to be powered down.", nodeFlag(model.NodePowerDown)},
	{"power_up", "", "Nodes that are to be powered up.", nodeFlag(model.NodePowerUp)},
	{"powered_down", "", "Nodes that are powered down.", nodeFlag(model.NodePoweredDown)},
	{"powering_down", "", "Nodes that are being powered down.", nodeFlag(model.NodePoweringDown)},
	{"powering_up", "", "Nodes that are being powered up.", nodeFlag(model.NodePoweringUp)},
	{"reboot_issued", "", "Nodes on which a reboot was started.", nodeFlag(model.NodeRebootIssued)},
	{"reboot_req", "reboot_requested", "Nodes that are to reboot.", nodeFlag(model.NodeRebootRequested)},
	{"resv", "", "Nodes in a reservation.", nodeFlag(model.NodeReserved)},
}

func nodeBase(want model.NodeState) func(model.NodeState) bool {
	return func(s model.NodeState) bool { return s.Base() == want }
}

func nodeFlag(flag model.NodeState) func(model.NodeState) bool {
	return func(s model.NodeState) bool { return s&flag != 0 }
}

func isDraining(s model.NodeState) bool {
	return s&model.NodeDrain != 0 && (s.Base() == model.NodeAllocated || s.Base() == model.NodeMixed)
}

func isDrained(s model.NodeState) bool { return s&model.NodeDrain != 0 && !isDraining(s) }

// takesJobs reports whether a job may start on a node in the state s.
func takesJobs(s model.NodeState) bool {
	switch s.Base() {
	case model.NodeIdle, model.NodeAllocated, model.NodeMixed:
		return s&(model.NodeDrain|model.NodeFail|model.NodeNotResponding|model.NodeInvalidReg) == 0
	}
	return false
}

// effectiveState returns the state of n. If jobs use only a part of the node,
// the state is MIXED. Controllers don't always send this state, so clients must
// compute it.
func effectiveState(n *model.Node) model.NodeState {
	base := n.State.Base()
	if base == model.NodeDown || base == model.NodeFuture {
		return n.State
	}
	partial := n.AllocCPUs > 0 && n.AllocCPUs < cpus(n)
	noCPUs := n.AllocCPUs == 0 && n.AllocTRES != "" // only resources other than CPUs are allocated
	if partial || noCPUs {
		return n.State - base + model.NodeMixed
	}
	return n.State
}

// nodeGroup holds the counts of all nodes, or of the nodes of one partition.
type nodeGroup struct {
	count  uint64
	states [32]uint64 // in the order of nodeStates
	nodeAmounts
}

// nodeAmounts holds the resources of some nodes, or of one.
type nodeAmounts struct {
	cpus, cpusEffective, cpusAllocated, cpusIdle         uint64
	gpus, gpusAllocated                                  uint64
	memory, memoryAvailable, memoryAllocated, memoryFree uint64 // in MiB
}

// Node adds a node that is in the given partitions.
func (c *Counts) Node(n *model.Node, partitions []string) error {
	var states uint32
	state := effectiveState(n)
	for i := range nodeStates {
		if nodeStates[i].is(state) {
			states |= 1 << i
		}
	}
	kinds := gresOf(n)
	gpus := gpusOf(n, kinds)
	c.nodes.add(n, states, gpus)
	for _, name := range partitions {
		if p := c.partitions[exposition.Text(name)]; p != nil {
			p.nodes.add(n, states, gpus)
		}
	}
	if c.by.Node {
		node, err := labelled(c.eachNode, "node", n.Name)
		if err != nil {
			return err
		}
		node.add(n, gpus)
	}
	takes := takesJobs(n.State)
	c.cpus.add(uint64(cpus(n)), uint64(n.AllocCPUs), takes)
	c.memory.add(saturatingSub(n.Memory, n.SpecializedMemory), n.AllocMemory, takes)
	for _, g := range kinds {
		s := c.gres[g.gresKind]
		if s == nil {
			if len(c.gres) >= maxValues {
				return errs.New(errs.BadAnswer, "the controller's nodes have more than %d kinds of GRES", maxValues)
			}
			s = new(stateAmounts)
			c.gres[g.gresKind] = s
		}
		s.add(g.total, g.used, takes)
	}
	return nil
}

// add adds a node's units of a resource: total is the number of units, and used
// is the number that are allocated to jobs.
func (s *stateAmounts) add(total, used uint64, takesJobs bool) {
	s.allocated += used
	if takesJobs {
		s.idle += saturatingSub(total, used)
	} else {
		s.down += saturatingSub(total, used)
	}
}

// cpus returns the number of a node's CPUs that jobs may use.
func cpus(n *model.Node) uint16 {
	if n.EffectiveCPUs == 0 {
		return n.CPUs
	}
	return n.EffectiveCPUs
}

// saturatingSub returns a - b, or 0 if b is larger.
func saturatingSub(a, b uint64) uint64 { return a - min(a, b) }

// gpuAmounts holds a node's numbers of GPUs.
type gpuAmounts struct{ total, allocated uint64 }

// gpusOf returns the numbers of GPUs of n, whose generic resources are kinds.
// As in slurmctld, the total is the trackable resource gres/gpu, so it is 0 if
// AccountingStorageTRES does not contain this resource.
func gpusOf(n *model.Node, kinds []gres) (g gpuAmounts) {
	for name, value := range tres(n.TRES) {
		if name == "gres/gpu" {
			g.total = amount(value)
		}
	}
	for _, kind := range kinds {
		if kind.name == "gpu" {
			g.allocated += kind.used
		}
	}
	return g
}

func (g *nodeGroup) add(n *model.Node, states uint32, gpus gpuAmounts) {
	g.count++
	for ; states != 0; states &= states - 1 {
		g.states[bits.TrailingZeros32(states)]++
	}
	g.nodeAmounts.add(n, gpus)
}

func (g *nodeAmounts) add(n *model.Node, gpus gpuAmounts) {
	g.cpus += uint64(n.CPUs)
	g.cpusEffective += uint64(cpus(n))
	g.cpusAllocated += uint64(n.AllocCPUs)
	g.cpusIdle += saturatingSub(uint64(cpus(n)), uint64(n.AllocCPUs))
	g.gpus += gpus.total
	g.gpusAllocated += gpus.allocated
	g.memory += n.Memory
	g.memoryAvailable += saturatingSub(n.Memory, n.SpecializedMemory)
	g.memoryAllocated += n.AllocMemory
	g.memoryFree += n.FreeMem.Or(0)
}

// nodeMeasures returns the metrics for all nodes together, and those for the
// nodes of one partition.
var nodeMeasures = sync.OnceValues(func() (all, partition []measure[nodeGroup]) {
	all = []measure[nodeGroup]{{"", "Nodes.", func(g *nodeGroup) float64 { return float64(g.count) }}}
	for i, s := range nodeStates {
		get := func(g *nodeGroup) float64 { return float64(g.states[i]) }
		all = append(all, measure[nodeGroup]{"_" + s.name, s.help, get})
		if s.partition == "" {
			s.partition = s.name
		}
		partition = append(partition, measure[nodeGroup]{"_" + s.partition, s.help, get})
	}
	return all, append(partition,
		measure[nodeGroup]{"_cpus_efctv", "CPUs that jobs may use.", func(g *nodeGroup) float64 { return float64(g.cpusEffective) }},
		measure[nodeGroup]{"_cpus_alloc", "CPUs that are allocated.", func(g *nodeGroup) float64 { return float64(g.cpusAllocated) }},
		measure[nodeGroup]{"_cpus_idle", "CPUs that are not allocated, on nodes in any state.", func(g *nodeGroup) float64 { return float64(g.cpusIdle) }},
		measure[nodeGroup]{"_mem_tot", "Memory of the nodes, in MiB.", func(g *nodeGroup) float64 { return float64(g.memory) }},
		measure[nodeGroup]{"_mem_avail", "Memory that jobs may use, in MiB.", func(g *nodeGroup) float64 { return float64(g.memoryAvailable) }},
		measure[nodeGroup]{"_mem_alloc", "Memory that is allocated, in MiB.", func(g *nodeGroup) float64 { return float64(g.memoryAllocated) }},
		measure[nodeGroup]{"_mem_free", "Memory that nodes report as free, in MiB.", func(g *nodeGroup) float64 { return float64(g.memoryFree) }},
	)
})

// eachNodeMeasures contains the metrics of a single node. The unit of those
// whose names end in _bytes is MiB, as in slurmctld.
var eachNodeMeasures = []measure[nodeAmounts]{
	{"_cpus", "CPUs of the node.", func(g *nodeAmounts) float64 { return float64(g.cpus) }},
	{"_cpus_effective", "CPUs that jobs may use.", func(g *nodeAmounts) float64 { return float64(g.cpusEffective) }},
	{"_cpus_alloc", "CPUs that are allocated.", func(g *nodeAmounts) float64 { return float64(g.cpusAllocated) }},
	{"_cpus_idle", "CPUs that are not allocated.", func(g *nodeAmounts) float64 { return float64(g.cpusIdle) }},
	{"_gpus", "GPUs of the node.", func(g *nodeAmounts) float64 { return float64(g.gpus) }},
	{"_gpus_alloc", "GPUs that are allocated.", func(g *nodeAmounts) float64 { return float64(g.gpusAllocated) }},
	{"_memory_bytes", "Memory of the node, in MiB.", func(g *nodeAmounts) float64 { return float64(g.memory) }},
	{"_memory_effective_bytes", "Memory that jobs may use, in MiB.", func(g *nodeAmounts) float64 { return float64(g.memoryAvailable) }},
	{"_memory_alloc_bytes", "Memory that is allocated, in MiB.", func(g *nodeAmounts) float64 { return float64(g.memoryAllocated) }},
	{"_memory_free_bytes", "Memory that the node reports as free, in MiB.", func(g *nodeAmounts) float64 { return float64(g.memoryFree) }},
}

// writeResources writes how much of each resource is allocated, idle and down.
func (c *Counts) writeResources(w *exposition.Writer) {
	resource(w, Prefix+"cpus", "CPUs that jobs may use, by state.", 1, []series[stateAmounts]{{nil, &c.cpus}})
	resource(w, Prefix+"memory_bytes", "Memory that jobs may use, by state.", 1<<20, []series[stateAmounts]{{nil, &c.memory}})
	var list []series[stateAmounts]
	for _, kind := range sortedGRES(c.gres) {
		list = append(list, series[stateAmounts]{[]string{"gres", kind.name, "type", kind.typ}, c.gres[kind]})
	}
	resource(w, Prefix+"gres", "Generic resources, by state.", 1, list)
}

// resource writes a metric of a resource. For each element of list, it writes
// one sample for each state: allocated, idle and down.
func resource(w *exposition.Writer, name, help string, unit float64, list []series[stateAmounts]) {
	if len(list) == 0 {
		return
	}
	w.Family(name, exposition.Gauge, help)
	for _, n := range list {
		w.Sample(name, unit*float64(n.value.allocated), append(n.labels, "state", "allocated")...)
		w.Sample(name, unit*float64(n.value.idle), append(n.labels, "state", "idle")...)
		w.Sample(name, unit*float64(n.value.down), append(n.labels, "state", "down")...)
	}
}
