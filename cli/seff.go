package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"schedrestd/cli/rest"
	"schedrestd/cli/table"
	"schedrestd/internal/errs"
)

func seffCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "seff ID...",
		Short: "Show how much of what jobs had they have used",
		Long: `seff compares what jobs have used with what they had, from the accounting records: run time with
the time limit, CPU time with that of the allocated CPUs, and memory with the allocated memory.
The amounts are those of the script seff of Slurm: the CPU time is that of all steps, and the memory
is the largest of a step, in which the highest amounts of all tasks are added up.

An array has a line for each task, and a heterogeneous job one for each component. A dash means
that an amount is not known: steps report theirs when they end, and not at all if the site does
not measure it. While a job runs, CPU% and MEM% are not known.`,
		Example: "  schedctl seff 12\n  schedctl seff 13_[1-8] -o csv",
		Args:    atLeastOneJob,
	}
	o.connectFlags(cmd)
	o.outputFlag(cmd, "csv")
	cmd.ValidArgsFunction = o.completeJobs(&filter{all: true})
	return setRun(cmd, func(cmd *cobra.Command, ids []string) error {
		c, ids, err := o.dialForJobs(cmd.Context(), ids)
		if err != nil {
			return err
		}
		s := o.newSheet(cmd.OutOrStdout(), "jobs", efficiencyColumns())
		s.compare = func(a, b record) int { return compareNatural(a.get("job"), b.get("job")) }
		w := newWanted("job", "schedctl history lists the jobs of a period", ids)
		list, running, err := c.efficiencies(cmd.Context(), w)
		if err != nil {
			return err
		}
		for _, e := range list {
			text, err := json.Marshal(e)
			if err == nil {
				err = s.add(text)
			}
			if err != nil {
				return err
			}
		}
		if running {
			c.warn("what the steps that run have used is not known before they end")
		}
		return s.close(w.check())
	})
}

// efficiencies returns those of the last runs of the wanted jobs: a job that was
// requeued has several records. It also reports whether one of them is running.
func (c *connection) efficiencies(ctx context.Context, w *wanted) (list []*efficiency, running bool, err error) {
	index := map[string]int{} // in list, by job
	for _, query := range queries(url.Values{}, w.names) {
		err := c.AccountingJobs(ctx, &rest.List{Query: query, Fields: efficiencyFields}, func(j *rest.Job, text json.RawMessage) error {
			e, err := efficiencyOf(j, text)
			if err != nil {
				return errs.Wrap(err, errs.BadAnswer, "read the accounting records")
			}
			if !w.hasPart(j) {
				return nil
			}
			if i, ok := index[e.Job]; ok {
				list[i] = e
			} else {
				index[e.Job], list = len(list), append(list, e)
			}
			return nil
		})
		if err != nil {
			return nil, false, err
		}
	}
	return list, slices.ContainsFunc(list, func(e *efficiency) bool { return e.running }), nil
}

// hasPart reports whether the user wants the job j, or the whole that it is a part
// of.
func (w *wanted) hasPart(j *rest.Job) (has bool) {
	for _, id := range w.names {
		if j.Selects(id) {
			has, w.seen[id] = true, true
		}
	}
	return has
}

// efficiencyFields are the fields of accounting records that efficiencyOf needs.
var efficiencyFields = []string{"job_id", "array", "het", "cluster", "user", "account", "state", "exit_code", "time", "required", "allocation_nodes", "tres", "steps"}

// An efficiency is what a job has used, beside what it had. Times are in seconds,
// and amounts of memory in bytes. What is not known is null.
type efficiency struct {
	Job      string   `json:"job"` // such as 12, 12_3 or 12+1
	ID       uint32   `json:"job_id"`
	Cluster  string   `json:"cluster"`
	User     string   `json:"user"`
	Account  string   `json:"account"`
	State    []string `json:"state"`
	ExitCode int64    `json:"exit_code"`
	running  bool
	Nodes    int64 `json:"nodes"`
	CPUs     struct {
		Requested int64 `json:"requested"`
		Allocated int64 `json:"allocated"`
	} `json:"cpus"`
	Time struct {
		Elapsed  int64    `json:"elapsed"`
		Limit    *int64   `json:"limit"`
		Fraction *float64 `json:"fraction"` // of the limit
	} `json:"time"`
	CPUTime struct {
		Allocated  int64    `json:"allocated"` // run time of all allocated CPUs
		Used       *int64   `json:"used"`
		Efficiency *float64 `json:"efficiency"`
	} `json:"cpu_time"`
	Memory struct {
		Requested  int64    `json:"requested"`
		Allocated  int64    `json:"allocated"`
		Used       *int64   `json:"used"`
		Efficiency *float64 `json:"efficiency"`
	} `json:"memory"`
}

// A trackable is an amount of a trackable resource.
type trackable struct {
	Type  string `json:"type"`
	Count int64  `json:"count"`
}

// countOf returns the amount of a resource in a list, or 0.
func countOf(list []trackable, kind string) int64 {
	i := slices.IndexFunc(list, func(t trackable) bool { return t.Type == kind })
	if i < 0 {
		return 0
	}
	return list[i].Count
}

// A usedStep contains the time and the resources that a step has used.
type usedStep struct {
	State rest.Words `json:"state"`
	Time  struct {
		Total struct {
			Seconds      int64 `json:"seconds"`
			Microseconds int64 `json:"microseconds"`
		} `json:"total"`
	} `json:"time"`
	TRES struct {
		Used struct {
			Total []trackable `json:"total"`
		} `json:"requested"` // slurmrestd's name for what a step has used
	} `json:"tres"`
}

// efficiencyOf computes the efficiency of the job j from its record.
func efficiencyOf(j *rest.Job, text json.RawMessage) (*efficiency, error) {
	var r struct {
		Cluster string `json:"cluster"`
		Time    struct {
			Elapsed int64 `json:"elapsed"`
		} `json:"time"`
		Required struct {
			CPUs int64 `json:"CPUs"`
		} `json:"required"`
		TRES struct {
			Allocated []trackable `json:"allocated"`
			Requested []trackable `json:"requested"`
		} `json:"tres"`
		Steps []usedStep `json:"steps"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	e := &efficiency{Job: j.Label(), ID: j.ID, Cluster: r.Cluster, User: j.User, Account: j.Account, State: j.State,
		ExitCode: j.Exit.Code.Int(), running: j.Active() && j.BaseState() != "PENDING", Nodes: countOf(r.TRES.Allocated, "node")}
	const mebibyte = 1 << 20
	e.CPUs.Requested, e.CPUs.Allocated = r.Required.CPUs, countOf(r.TRES.Allocated, "cpu")
	e.Memory.Requested, e.Memory.Allocated = countOf(r.TRES.Requested, "mem")*mebibyte, countOf(r.TRES.Allocated, "mem")*mebibyte
	e.Time.Elapsed = r.Time.Elapsed
	if j.TimeLimit.Set {
		limit := j.TimeLimit.Int() * 60
		e.Time.Limit, e.Time.Fraction = &limit, fraction(e.Time.Elapsed, limit)
	}
	e.CPUTime.Allocated = e.Time.Elapsed * e.CPUs.Allocated
	e.addSteps(r.Steps, j.Active())
	return e, nil
}

// addSteps sets what the steps of a job have used and, unless the job is active, how
// efficient that was.
func (e *efficiency) addSteps(steps []usedStep, active bool) {
	var seconds, microseconds, memory int64
	ended, measured := false, false
	for i := range steps {
		step := &steps[i]
		if slices.Contains(step.State, "RUNNING") {
			continue
		}
		ended = true
		seconds += step.Time.Total.Seconds
		microseconds += step.Time.Total.Microseconds
		measured = measured || len(step.TRES.Used.Total) > 0
		memory = max(memory, countOf(step.TRES.Used.Total, "mem"))
	}
	if ended {
		seconds += (microseconds + 500_000) / 1_000_000
		e.CPUTime.Used = &seconds
	}
	if measured {
		e.Memory.Used = &memory
	}
	if !active {
		if ended {
			e.CPUTime.Efficiency = fraction(seconds, e.CPUTime.Allocated)
		}
		if measured {
			e.Memory.Efficiency = fraction(memory, e.Memory.Allocated)
		}
	}
}

// fraction returns a/b, or nil if b is 0.
func fraction(a, b int64) *float64 {
	if b == 0 {
		return nil
	}
	f := float64(a) / float64(b)
	return &f
}

// efficiencyColumns returns the columns of efficiencies.
func efficiencyColumns() []sheetColumn {
	cell := func(field string, format func(n float64) string) func(record) table.Cell {
		return func(r record) table.Cell {
			n, err := strconv.ParseFloat(r.get(field), 64)
			if err != nil {
				return table.Cell{}
			}
			return textCell(format(n))
		}
	}
	column := func(heading, field string, drop int, format func(n float64) string) sheetColumn {
		return sheetColumn{Column: table.Column{Heading: heading, Right: true, Drop: drop}, field: field, cell: cell(field, format)}
	}
	seconds := func(n float64) string { return formatDuration(time.Duration(n) * time.Second) }
	memory := func(n float64) string {
		if n < 1<<20 {
			return strconv.FormatFloat(n/1024, 'f', 0, 64) + "K"
		}
		return formatMemory(int64(math.Round(n / (1 << 20))))
	}
	allocated := func(n float64) string {
		if n == 0 { // the site allocates no memory
			return ""
		}
		return memory(n)
	}
	percent := func(n float64) string { return strconv.FormatFloat(n*100, 'f', 1, 64) + "%" }
	state := func(r record) table.Cell { return stateCell(strings.Split(cmp.Or(r.get("state"), "UNKNOWN"), ",")) }
	return []sheetColumn{
		{Column: table.Column{Heading: "JOBID"}, field: "job"}, {field: "job_id"}, {field: "cluster"},
		{Column: table.Column{Heading: "USER", Shrink: 8, Rank: 1}, field: "user"}, {field: "account"},
		{Column: table.Column{Heading: "STATE", Shrink: 7, Rank: 2}, field: "state", cell: state},
		{field: "exit_code"},
		{Column: table.Column{Heading: "NODES", Right: true, Drop: 1}, field: "nodes"},
		{field: "cpus.requested"},
		{Column: table.Column{Heading: "CPUS", Right: true}, field: "cpus.allocated"},
		column("TIME", "time.elapsed", 0, seconds), column("LIMIT", "time.limit", 4, seconds), column("TIME%", "time.fraction", 5, percent),
		{field: "cpu_time.allocated"},
		column("CPUTIME", "cpu_time.used", 3, seconds), column("CPU%", "cpu_time.efficiency", 0, percent),
		{field: "memory.requested"},
		column("MEMORY", "memory.allocated", 0, allocated), column("PEAK", "memory.used", 2, memory), column("MEM%", "memory.efficiency", 0, percent),
	}
}
