package cluster

import (
	"math/bits"
	"strconv"
	"strings"
	"sync"

	"schedrestd/internal/errs"
	"schedrestd/metric/exposition"
	"schedrestd/model"
)

// jobStates are the states by which jobs are counted. A job is counted for
// every state in this list that applies to it. Exactly one of a job's states is
// a base state (jobBase).
var jobStates = [...]struct {
	name, help string
	is         func(model.JobState) bool
}{
	statePending: {"pending", "Jobs that wait; each task of an array counts.", jobBase(model.JobPending)},
	{"running", "Jobs that run.", jobBase(model.JobRunning)},
	{"suspended", "Jobs that are suspended.", jobBase(model.JobSuspended)},
	{"completed", "Jobs that ended with exit code 0.", jobBase(model.JobComplete)},
	{"cancelled", "Jobs that were cancelled.", jobBase(model.JobCancelled)},
	{"failed", "Jobs that ended with another exit code.", jobBase(model.JobFailed)},
	{"timeout", "Jobs that reached their time limit.", jobBase(model.JobTimeout)},
	{"node_failed", "Jobs that ended because a node failed.", jobBase(model.JobNodeFail)},
	{"preempted", "Jobs that were preempted.", jobBase(model.JobPreempted)},
	{"bootfail", "Jobs that ended because a node did not boot.", jobBase(model.JobBootFail)},
	{"deadline", "Jobs that reached their deadline.", jobBase(model.JobDeadline)},
	{"outofmemory", "Jobs that ran out of memory.", jobBase(model.JobOutOfMemory)},
	{"started", "Jobs that have started, including those that have ended.", func(s model.JobState) bool { return s.Base() > model.JobPending }},
	{"finished", "Jobs that have ended, in any way.", model.JobState.Ended},
	{"completing", "Jobs whose processes are being ended or whose epilog is still running.", jobFlag(model.JobCompleting)},
	{"configuring", "Jobs whose nodes are being prepared.", jobFlag(model.JobConfiguring)},
	{"expediting", "Jobs that are being requeued ahead of others.", jobFlag(model.JobExpediting)},
	{"fed_requeued", "Jobs that are being requeued by the federation.", jobFlag(model.JobRequeueFed)},
	{"powerup_node", "Jobs that wait for nodes to be powered up.", jobFlag(model.JobPowerUpNode)},
	{"requeued", "Jobs that are being requeued.", jobFlag(model.JobRequeued)},
	{"resizing", "Jobs whose size is being changed.", jobFlag(model.JobResizing)},
	{"revoked", "Jobs that another cluster of the federation has started.", jobFlag(model.JobRevoked)},
	{"signaling", "Jobs that are being signalled.", jobFlag(model.JobSignaling)},
	{"stageout", "Jobs whose data are being staged out.", jobFlag(model.JobStageOut)},
}

const statePending = 0

func jobBase(want model.JobState) func(model.JobState) bool {
	return func(s model.JobState) bool { return s.Base() == want }
}

func jobFlag(flag model.JobState) func(model.JobState) bool {
	return func(s model.JobState) bool { return s&flag != 0 }
}

// Reasons for which a job waits.
const (
	waitPartitionNodeLimit = 4
	waitHeld               = 8
	waitHeldUser           = 16
)

// group holds the counts of a group of jobs: all jobs, or those of one
// partition, user or account.
type group struct {
	all                uint64
	states             [len(jobStates)]uint64
	held               uint64
	cpus, gpus, memory uint64 // allocated resources; memory is in MiB
	nodes              []byte // bit set of the allocated nodes
}

// queue holds the numbers that are computed only for the jobs of a partition,
// and not for other groups of jobs.
type queue struct {
	maxNodes        uint32 // largest number of nodes that a pending job requests
	maxNodesNotHeld uint32 // the same for jobs that are not held
	nodeLimit       uint64
}

// job holds the amounts that one job adds to its groups.
type job struct {
	states             uint32 // bits, in the order of jobStates
	tasks              uint64
	held               bool
	cpus, gpus, memory uint64
	nodes              []byte // bit set of allocated nodes
}

// Job adds a job. The user argument is the name of the job's user. It is used
// only if By.User is set.
func (c *Counts) Job(j *model.Job, user string) error {
	amounts := jobAmounts(j)
	c.jobs.add(&amounts, amounts.tasks)
	name, _, _ := strings.Cut(j.Partition, ",") // a job with several partitions is counted only in the first one
	if p := c.partitions[exposition.Text(name)]; p != nil {
		listed := uint64(1)
		if j.State.Ended() && j.State&model.JobCompleting == 0 {
			listed = 0
		}
		p.jobs.add(&amounts, listed)
		p.queue.add(j, &amounts)
	}
	if c.by.User {
		if err := addTo(c.users, "user", user, &amounts); err != nil {
			return err
		}
	}
	if c.by.Account {
		return addTo(c.accounts, "account", j.Account, &amounts)
	}
	return nil
}

// addTo adds a job to the group with the given name.
func addTo(groups map[string]*group, label, name string, j *job) error {
	g, err := labelled(groups, label, name)
	if err != nil {
		return err
	}
	g.add(j, 1)
	return nil
}

// labelled returns the element of m for a value of the given label. It creates
// the element if necessary.
func labelled[T any](m map[string]*T, label, value string) (*T, error) {
	value = exposition.Text(value)
	if v := m[value]; v != nil {
		return v, nil
	}
	if len(m) >= maxValues {
		return nil, errs.New(errs.Invalid, "there are more than %d values of %s", maxValues, label).
			WithHint("leave %q out of the parameter by", label).WithSource("query/by")
	}
	v := new(T)
	m[value] = v
	return v, nil
}

// jobAmounts returns the amounts that j adds to its groups.
func jobAmounts(j *model.Job) job {
	f := job{tasks: tasks(j)}
	f.held = j.State.Base() == model.JobPending && (j.StateReason == waitHeld || j.StateReason == waitHeldUser)
	for i := range jobStates {
		if jobStates[i].is(j.State) {
			f.states |= 1 << i
		}
	}
	if allocates(j.State) {
		f.cpus, f.nodes = uint64(j.NumCPUs), j.NodeIndexes.Bits
		for name, value := range tres(j.TRESAlloc) {
			switch name {
			case "cpu":
				f.cpus = amount(value)
			case "mem":
				f.memory = amount(value) >> 20
			case "gres/gpu":
				f.gpus = amount(value)
			}
		}
	}
	return f
}

// allocates reports whether resources are allocated to a job in the state s.
func allocates(s model.JobState) bool {
	return s.Base() == model.JobRunning || s.Base() == model.JobSuspended
}

// tasks returns the number of tasks that the record j stands for. The field
// j.ArrayTasks is a bit mask in hexadecimal digits. It contains the tasks of an
// array that have no records of their own. If j has no bit mask, tasks returns
// 1.
func tasks(j *model.Job) (n uint64) {
	digits, _ := strings.CutPrefix(j.ArrayTasks, "0x")
	if len(digits) == len(j.ArrayTasks) {
		return 1
	}
	for i := range len(digits) {
		d, _ := strconv.ParseUint(digits[i:i+1], 16, 8)
		n += uint64(bits.OnesCount64(d))
	}
	return max(n, 1)
}

// add adds a job to the group. It increases the group's number of jobs by
// total.
func (g *group) add(j *job, total uint64) {
	g.all += total
	for s := j.states; s != 0; s &= s - 1 {
		g.states[bits.TrailingZeros32(s)]++
	}
	if j.states&(1<<statePending) != 0 {
		g.states[statePending] += j.tasks - 1
	}
	if j.held {
		g.held += j.tasks
	}
	g.cpus += j.cpus
	g.gpus += j.gpus
	g.memory += j.memory
	g.nodes = union(g.nodes, j.nodes)
}

// add adds a job to its partition.
func (q *queue) add(j *model.Job, f *job) {
	if j.State.Base() != model.JobPending {
		return
	}
	maxNodes := max(j.MaxNodes, j.NumNodes) // if MaxNodes is not set, the controller sends in NumNodes the number that it expects to allocate
	q.maxNodes = max(q.maxNodes, maxNodes)
	if !f.held {
		q.maxNodesNotHeld = max(q.maxNodesNotHeld, maxNodes)
	}
	if j.StateReason == waitPartitionNodeLimit {
		q.nodeLimit++
	}
}

const nodesAlloc = "_nodes_alloc"

// jobMeasures returns the metrics of a group.
var jobMeasures = sync.OnceValue(func() []measure[group] {
	list := []measure[group]{
		{"", "Jobs that the controller knows.", func(g *group) float64 { return float64(g.all) }},
		{"_hold", "Jobs that wait because they are held.", func(g *group) float64 { return float64(g.held) }},
		{"_cpus_alloc", "CPUs of jobs that run or are suspended.", func(g *group) float64 { return float64(g.cpus) }},
		{"_gpus_alloc", "GPUs of jobs that run or are suspended.", func(g *group) float64 { return float64(g.gpus) }},
		{"_memory_alloc", "Memory of jobs that run or are suspended, in MiB.", func(g *group) float64 { return float64(g.memory) }},
		{nodesAlloc, "Nodes with a job that runs or is suspended.", func(g *group) float64 { return float64(setBits(g.nodes)) }},
	}
	for i, s := range jobStates {
		list = append(list, measure[group]{"_" + s.name, s.help, func(g *group) float64 { return float64(g.states[i]) }})
	}
	return list
})

// partitionMeasures returns the metrics of a partition.
var partitionMeasures = sync.OnceValue(func() []measure[partition] {
	var list []measure[partition]
	for _, m := range jobMeasures() {
		if m.name == nodesAlloc {
			continue // for a partition, Slurm counts nodes by state instead
		}
		list = append(list, measure[partition]{"_jobs" + m.name, m.help, func(p *partition) float64 { return m.value(&p.jobs) }})
	}
	list[0].help = "Jobs that have not ended or are still completing."
	_, ofNodes := nodeMeasures()
	for _, m := range ofNodes {
		list = append(list, measure[partition]{"_nodes" + m.name, m.help, func(p *partition) float64 { return m.value(&p.nodes) }})
	}
	return append(list,
		measure[partition]{"_nodes", "Nodes of the partition.", func(p *partition) float64 { return float64(p.count) }},
		measure[partition]{"_cpus", "CPUs of the partition's nodes.", func(p *partition) float64 { return float64(p.cpus) }},
		measure[partition]{"_gpus", "GPUs of the partition's nodes.", func(p *partition) float64 { return float64(p.nodes.gpus) }},
		measure[partition]{"_jobs_max_job_nodes", "The largest number of nodes that a waiting job may use.", func(p *partition) float64 { return float64(p.queue.maxNodes) }},
		measure[partition]{"_jobs_max_job_nodes_nohold", "The largest number of nodes that a waiting job may use, not counting held jobs.", func(p *partition) float64 { return float64(p.queue.maxNodesNotHeld) }},
		measure[partition]{"_jobs_wait_part_node_limit", "Jobs that wait because of the partition's limit on nodes.", func(p *partition) float64 { return float64(p.queue.nodeLimit) }},
	)
})

// union sets the bits of b in a, and returns a.
func union(a, b []byte) []byte {
	if len(b) > len(a) {
		a = append(a, make([]byte, len(b)-len(a))...)
	}
	for i, set := range b {
		a[i] |= set
	}
	return a
}

// setBits returns the number of bits that are set.
func setBits(set []byte) (n int) {
	for _, b := range set {
		n += bits.OnesCount8(b)
	}
	return n
}
