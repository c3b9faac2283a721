// Package cluster counts jobs, nodes and shares of a cluster, and writes the numbers as
// metrics.
//
// The records of the controller are passed to a Counts one at a time and are not kept:
// its memory depends on how many partitions, users and accounts there are, and not on
// how many jobs. Nothing can be written before the last record, because the samples of
// one metric stand together.
//
// Metrics have the names of Slurm 25.11's own where Slurm has such a metric, and its
// units. The names of all others begin with Prefix.
package cluster

import (
	"maps"
	"slices"

	"schedrestd/errs"
	"schedrestd/metric/exposition"
	"schedrestd/model"
)

// Prefix begins the names of metrics that Slurm does not have.
const Prefix = "schedrestd_cluster_"

// mostValues is how many values each label may have. Each value costs memory here, and a
// time series for each metric in the server that scrapes.
const mostValues = 20_000

// By says which labels with names of people are wanted.
type By struct{ User, Account bool }

// Counts counts what the records of a cluster say.
type Counts struct {
	by         By
	jobs       group
	partitions map[string]*partition
	users      map[string]*group
	accounts   map[string]*group
	nodes      nodeGroup
	cpus       shares // CPUs
	memory     shares // MiB
	gres       map[gresKind]*shares
	scheduler  *model.ControllerStats
	fairShare  fairShare
}

// partition is what is counted for a partition.
type partition struct {
	jobs  group
	queue queue
	nodes nodeGroup
	cpus  uint64
	count uint64 // of nodes
}

// shares divides an amount of something.
type shares struct{ allocated, idle, down uint64 }

// New returns a Counts with nothing counted.
func New(by By) *Counts {
	return &Counts{by: by, partitions: map[string]*partition{}, users: map[string]*group{}, accounts: map[string]*group{}, gres: map[gresKind]*shares{}}
}

// Partition adds a partition. Partitions come first: jobs and nodes in others are counted
// without their partition.
func (c *Counts) Partition(p *model.Partition) error {
	if len(c.partitions) >= mostValues {
		return errs.New(errs.BadAnswer, "the controller has more than %d partitions", mostValues)
	}
	c.partitions[exposition.Text(p.Name)] = &partition{cpus: uint64(p.TotalCPUs), count: uint64(p.TotalNodes)}
	return nil
}

// Scheduler sets the statistics of the scheduler.
func (c *Counts) Scheduler(s *model.ControllerStats) { c.scheduler = s }

// Write writes all metrics.
func (c *Counts) Write(w *exposition.Writer) {
	whole := func(g *group) []named[group] { return []named[group]{{nil, g}} }
	write(w, "slurm_jobs", jobMeasures, whole(&c.jobs))
	partitions := labelled("partition", c.partitions)
	one(w, "slurm_partitions", "Partitions.", float64(len(partitions)))
	write(w, "slurm_partition", partitionMeasures, partitions)
	if c.by.User {
		write(w, "slurm_user_jobs", jobMeasures, labelled("username", c.users))
	}
	if c.by.Account {
		write(w, "slurm_account_jobs", jobMeasures, labelled("account", c.accounts))
	}
	write(w, "slurm_nodes", nodeMeasures, []named[nodeGroup]{{nil, &c.nodes}})
	c.writeResources(w)
	if c.scheduler != nil {
		for _, m := range schedulerMeasures {
			one(w, "slurm_"+m.name, m.help, m.of(c.scheduler))
		}
	}
	c.fairShare.write(w, c.by)
}

// measure is a metric that is a number of a T.
type measure[T any] struct {
	name, help string
	of         func(*T) float64
}

// named is a T with its labels.
type named[T any] struct {
	labels []string
	of     *T
}

// labelled returns the elements of m, sorted, with their names in a label.
func labelled[T any](label string, m map[string]*T) []named[T] {
	list := make([]named[T], 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, named[T]{[]string{label, name}, m[name]})
	}
	return list
}

// write writes the metrics of each element of list.
func write[T any](w *exposition.Writer, prefix string, measures []measure[T], list []named[T]) {
	if len(list) == 0 {
		return
	}
	for _, m := range measures {
		w.Family(prefix+m.name, exposition.Gauge, m.help)
		for _, n := range list {
			w.Sample(prefix+m.name, m.of(n.of), n.labels...)
		}
	}
}

// one writes a metric with one sample.
func one(w *exposition.Writer, name, help string, value float64) {
	w.Family(name, exposition.Gauge, help)
	w.Sample(name, value)
}
