// Package cluster counts the jobs, nodes and fair shares of a cluster, and
// writes the numbers as metrics.
//
// A Counts receives the controller's records one at a time, and does not store
// records of jobs or nodes. So the number of jobs does not affect its memory;
// the numbers of partitions, users and accounts do. Nothing can be written
// before all records have been counted, because all samples of a metric must be
// written together.
//
// If Slurm 25.11 or 26.05 has the same metric, this package uses Slurm's name
// and unit.
// The names of all other metrics begin with Prefix.
package cluster

import (
	"maps"
	"slices"

	"schedrestd/internal/errs"
	"schedrestd/metric/exposition"
	"schedrestd/model"
)

// Prefix begins the name of each metric that Slurm does not have.
const Prefix = "schedrestd_cluster_"

// maxValues is the maximum number of values of each label. Each value takes
// memory in this process, and adds one time series per metric to the Prometheus
// server.
const maxValues = 20_000

// By selects whether to write the metrics whose labels name users, those whose
// labels name accounts, and those whose labels name nodes.
type By struct{ User, Account, Node bool }

// Counts holds the numbers that have been counted so far.
type Counts struct {
	by         By
	jobs       group
	partitions map[string]*partition
	users      map[string]*group
	accounts   map[string]*group
	nodes      nodeGroup
	eachNode   map[string]*nodeAmounts
	cpus       stateAmounts // in CPUs
	memory     stateAmounts // in MiB
	gres       map[gresKind]*stateAmounts
	scheduler  *model.ControllerStats
	fairShare  fairShare
}

// partition has the counts of a partition.
type partition struct {
	jobs  group
	queue queue
	nodes nodeGroup
	cpus  uint64
	count uint64 // number of nodes
}

// stateAmounts divides an amount by state.
type stateAmounts struct{ allocated, idle, down uint64 }

// New returns an empty Counts.
func New(by By) *Counts {
	return &Counts{
		by:         by,
		partitions: map[string]*partition{},
		users:      map[string]*group{},
		accounts:   map[string]*group{},
		eachNode:   map[string]*nodeAmounts{},
		gres:       map[gresKind]*stateAmounts{},
	}
}

// Partition adds a partition. All partitions must be added before the jobs and
// nodes. Otherwise a job or node would not be counted for its partition.
func (c *Counts) Partition(p *model.Partition) error {
	if len(c.partitions) >= maxValues {
		return errs.New(errs.BadAnswer, "the controller has more than %d partitions", maxValues)
	}
	c.partitions[exposition.Text(p.Name)] = &partition{cpus: uint64(p.TotalCPUs), count: uint64(p.TotalNodes)}
	return nil
}

// Scheduler sets the statistics of the scheduler.
func (c *Counts) Scheduler(s *model.ControllerStats) { c.scheduler = s }

// Write writes all metrics.
func (c *Counts) Write(w *exposition.Writer) {
	whole := func(g *group) []series[group] { return []series[group]{{nil, g}} }
	write(w, "slurm_jobs", jobMeasures(), whole(&c.jobs))
	partitions := sortedSeries("partition", c.partitions)
	writeSingle(w, "slurm_partitions", "Partitions.", float64(len(partitions)))
	write(w, "slurm_partition", partitionMeasures(), partitions)
	if c.by.User {
		write(w, "slurm_user_jobs", jobMeasures(), sortedSeries("username", c.users))
	}
	if c.by.Account {
		write(w, "slurm_account_jobs", jobMeasures(), sortedSeries("account", c.accounts))
	}
	allNodes, _ := nodeMeasures()
	write(w, "slurm_nodes", allNodes, []series[nodeGroup]{{nil, &c.nodes}})
	write(w, "slurm_node", eachNodeMeasures, sortedSeries("node", c.eachNode))
	c.writeResources(w)
	if c.scheduler != nil {
		for _, m := range schedulerMeasures {
			writeSingle(w, "slurm_"+m.name, m.help, m.value(c.scheduler))
		}
	}
	c.fairShare.write(w, c.by)
}

// measure is a metric, with a function that computes its value from a T.
type measure[T any] struct {
	name, help string
	value      func(*T) float64
}

// series is a T with its labels.
type series[T any] struct {
	labels []string
	value  *T
}

// sortedSeries returns the elements of m, sorted by key. The key of each
// element becomes the value of its label.
func sortedSeries[T any](label string, m map[string]*T) []series[T] {
	list := make([]series[T], 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, series[T]{[]string{label, name}, m[name]})
	}
	return list
}

// write writes all metrics in measures, each with a sample for every element of
// list.
func write[T any](w *exposition.Writer, prefix string, measures []measure[T], list []series[T]) {
	if len(list) == 0 {
		return
	}
	for _, m := range measures {
		w.Family(prefix+m.name, exposition.Gauge, m.help)
		for _, n := range list {
			w.Sample(prefix+m.name, m.value(n.value), n.labels...)
		}
	}
}

// writeSingle writes a metric with one sample.
func writeSingle(w *exposition.Writer, name, help string, value float64) {
	w.Family(name, exposition.Gauge, help)
	w.Sample(name, value)
}
