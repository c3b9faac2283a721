package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"

	"github.com/spf13/cobra"

	"schedrestd/cli/rest"
	"schedrestd/cli/table"
	"schedrestd/model"
)

func jobsCommand() *cobra.Command {
	var o options
	var f filter
	l := listing[*rest.Job]{columns: jobColumns()}
	cmd := &cobra.Command{
		Use:   "jobs",
		Short: "List jobs",
		Long: `jobs lists the jobs that wait, run or complete. With --all it also lists jobs that ended
some minutes ago and that the controller still has. The column start contains the expected
start of jobs that wait, as far as the controller knows it. Tasks of an array that wait have
one line, unless they differ in what is shown.`,
		Example: "  schedctl jobs --me\n  schedctl jobs --state PENDING --partition gpu -o json\n  schedctl jobs --state PENDING --columns jobid,name,start,reason --sort start",
		Args:    atMost(0, "schedctl job ID shows a job"),
	}
	o.connectFlags(cmd)
	o.outputFlag(cmd, "wide")
	f.flags(cmd)
	l.flags(cmd)
	cmd.Flags().BoolVarP(&f.all, "all", "a", false, "also jobs that have ended")
	o.completeFilter(cmd)
	return setRun(cmd, func(cmd *cobra.Command, _ []string) error {
		if err := l.check(o.output); err != nil {
			return err
		}
		c, err := o.dialWithFilter(cmd.Context(), &f)
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		if d := o.document(out, "jobs"); d != nil {
			others := 0
			_, err := c.RawJobs(cmd.Context(), f.jobs(nil), func(j *rest.Job, text json.RawMessage) error {
				if !f.matches(j) {
					others++
					return nil
				}
				return d.Add(text)
			})
			c.noteOthers(others)
			if err != nil {
				return err
			}
			return writeResult(out, d, nil, c.checkNames(cmd.Context(), &f))
		}
		var rows []*rest.Job
		// Only pending tasks are joined.
		if _, err := c.selectJobs(cmd.Context(), f.jobs(l.fields("job_state")), &f, func(j *rest.Job) { rows = append(rows, trimJob(j)) }); err != nil {
			return err
		}
		return writeResult(out, nil, l.table(sortJobs(joinTasks(&l, rows))), c.checkNames(cmd.Context(), &f))
	})
}

// sortJobs sorts jobs by their ids.
func sortJobs(rows []*rest.Job) []*rest.Job {
	slices.SortStableFunc(rows, func(a, b *rest.Job) int { return compareCells(jobIDCell(a), jobIDCell(b)) })
	return rows
}

// joinTasks joins the rows of pending tasks of an array that differ only in their
// ids: the controller has records of their own for tasks that were requeued, held or
// changed. squeue also joins tasks that wait for different reasons.
func joinTasks(l *listing[*rest.Job], rows []*rest.Job) (joined []*rest.Job) {
	same, keys := map[string][]*rest.Job{}, []string(nil)
	for _, j := range rows {
		if j.Array() == "" || j.BaseState() != "PENDING" {
			joined = append(joined, j)
			continue
		}
		key := j.Array()
		for _, c := range l.shownColumns() {
			if c.name != "jobid" {
				key += "\x00" + c.cell(j).Text
			}
		}
		if same[key] == nil {
			keys = append(keys, key)
		}
		same[key] = append(same[key], j)
	}
	for _, key := range keys {
		joined = append(joined, joinPending(same[key])...)
	}
	return joined
}

// joinPending makes the first of several jobs, which are pending tasks of one array,
// stand for all of them. If they are too many or a list of tasks is incomplete, it
// returns the jobs as they are.
func joinPending(jobs []*rest.Job) []*rest.Job {
	if len(jobs) == 1 {
		return jobs
	}
	var ids []string
	limit := ""
	for _, j := range jobs {
		tasks, complete := j.PendingTasks()
		if !complete || len(ids)+j.PendingCount() > maxNames {
			return jobs
		}
		if j.ArrayTask.Set {
			ids = append(ids, j.Label())
		}
		ids = slices.AppendSeq(ids, tasks)
		if _, n, ok := strings.Cut(j.ArrayTasks, "%"); ok {
			limit = "%" + n
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	_, list, _ := strings.Cut(model.FoldHosts(ids), "_")
	jobs[0].ArrayTask, jobs[0].ArrayTasks = rest.Number{}, strings.Trim(list, "[]")+limit
	return jobs[:1]
}

// selectJobs calls each(j) for the jobs that f selects. The request l is for
// these jobs.
func (c *connection) selectJobs(ctx context.Context, l *rest.List, f *filter, each func(*rest.Job)) (rest.Meta, error) {
	others := 0
	m, err := c.Jobs(ctx, l, func(j *rest.Job) error {
		if f.matches(j) {
			each(j)
		} else {
			others++
		}
		return nil
	})
	c.noteOthers(others)
	return m, err
}

// trimJob returns a copy of j without the texts that lists do not show. Copies
// share texts that many jobs have, because a list can be long.
func trimJob(j *rest.Job) *rest.Job {
	t := *j
	for _, text := range []*string{&t.User, &t.Account, &t.Partition, &t.QOS, &t.Reason, &t.Description} {
		*text = unique.Make(*text).Value()
	}
	for i, state := range t.State {
		t.State[i] = unique.Make(state).Value()
	}
	if t.GPUs() == 0 {
		t.Resources, t.Allocated = "", ""
	}
	t.Dependency, t.Comment, t.Directory, t.Command, t.Output, t.Error, t.OutputPath, t.ErrorPath = "", "", "", "", "", "", "", ""
	return &t
}

// jobColumns returns the columns of lists of jobs. On a narrow terminal, the
// reason why a job waits is the last thing that is shortened.
func jobColumns() []column[*rest.Job] {
	return []column[*rest.Job]{
		{name: "jobid", fields: jobKey, Column: table.Column{Heading: "JOBID"}, cell: jobIDCell},
		{name: "partition", fields: "partition", Column: table.Column{Heading: "PARTITION", Shrink: 5, Rank: 1, Drop: 4}, cell: func(j *rest.Job) table.Cell { return textCell(j.Partition) }},
		{name: "name", fields: "name", Column: table.Column{Heading: "NAME", Shrink: 8, Rank: 1}, cell: func(j *rest.Job) table.Cell { return textCell(j.Name) }},
		{name: "user", fields: "user_name", Column: table.Column{Heading: "USER", Shrink: 8, Rank: 2}, cell: func(j *rest.Job) table.Cell { return textCell(j.User) }},
		{name: "account", fields: "account", extra: true, Column: table.Column{Heading: "ACCOUNT", Shrink: 8, Rank: 2}, cell: func(j *rest.Job) table.Cell { return textCell(j.Account) }},
		{name: "qos", fields: "qos", extra: true, Column: table.Column{Heading: "QOS", Shrink: 6, Rank: 2}, cell: func(j *rest.Job) table.Cell { return textCell(j.QOS) }},
		{name: "state", fields: "job_state", Column: table.Column{Heading: "STATE", Shrink: 7, Rank: 3}, cell: func(j *rest.Job) table.Cell { return stateCell(j.State) }},
		{name: "time", fields: rest.ElapsedFields, Column: table.Column{Heading: "TIME", Right: true}, cell: elapsedCell},
		{name: "limit", fields: "time_limit", Column: table.Column{Heading: "LIMIT", Right: true, Drop: 3}, cell: func(j *rest.Job) table.Cell { return limitCell(j.TimeLimit) }},
		{name: "nodes", fields: "node_count", Column: table.Column{Heading: "NODES", Right: true, Drop: 1}, cell: func(j *rest.Job) table.Cell { return numberCell(j.NodeCount) }},
		{name: "cpus", fields: "cpus", Column: table.Column{Heading: "CPUS", Right: true, Drop: 2}, cell: func(j *rest.Job) table.Cell { return numberCell(j.CPUs) }},
		{name: "gpus", fields: "tres_alloc_str,tres_req_str", extra: true, Column: table.Column{Heading: "GPUS", Right: true}, cell: func(j *rest.Job) table.Cell { return jobGPUCell(j) }},
		{name: "memory", fields: "memory_per_node,memory_per_cpu", extra: true, Column: table.Column{Heading: "MEMORY", Right: true}, cell: jobMemoryCell},
		{name: "priority", fields: "priority", extra: true, Column: table.Column{Heading: "PRIORITY", Right: true}, cell: func(j *rest.Job) table.Cell { return numberCell(j.Priority) }},
		{name: "submitted", fields: "submit_time", extra: true, Column: table.Column{Heading: "SUBMITTED"}, cell: func(j *rest.Job) table.Cell { return timeCell(j.Submitted) }},
		{name: "started", fields: "start_time,job_state", extra: true, Column: table.Column{Heading: "STARTED"}, cell: func(j *rest.Job) table.Cell { return timeCell(startOf(j)) }},
		{name: "start", fields: "start_time,job_state", extra: true, Column: table.Column{Heading: "START"}, cell: expectedCell},
		{name: "ended", fields: "end_time,job_state", extra: true, Column: table.Column{Heading: "ENDED"}, cell: func(j *rest.Job) table.Cell { return timeCell(endOf(j)) }},
		{name: "exit", fields: "exit_code,job_state", extra: true, Column: table.Column{Heading: "EXIT", Right: true}, cell: exitCell},
		{name: "nodelist", fields: "nodes,state_reason,state_description", Column: table.Column{Heading: "NODELIST(REASON)", Shrink: 26, Rank: 4}, cell: placementCell},
		{name: "reason", fields: "state_reason,state_description", extra: true, Column: table.Column{Heading: "REASON", Shrink: 26, Rank: 4}, cell: func(j *rest.Job) table.Cell { return textCell(sentenceOf(j)) }},
		{name: "description", fields: "state_description", extra: true, Column: table.Column{Heading: "DESCRIPTION", Shrink: 26, Rank: 4}, cell: func(j *rest.Job) table.Cell { return textCell(j.Description) }},
	}
}

// jobIDCell returns a cell with the id of j. It is sorted by the number of the
// job, or of the array or heterogeneous job to which it belongs.
func jobIDCell(j *rest.Job) table.Cell {
	number := float64(j.ID)
	switch {
	case j.HetJob.Int() != 0:
		number = j.HetJob.Value + j.HetOffset.Value/(1<<32)
	case j.ArrayJob.Int() != 0:
		number = j.ArrayJob.Value + (j.ArrayTask.Value+1)/(1<<32)
	}
	return countCell(j.Label(), number)
}

func elapsedCell(j *rest.Job) table.Cell {
	d := j.Elapsed(time.Now())
	return countCell(formatDuration(d), d.Seconds())
}

// reasonOf returns the word for the reason why j waits or has failed, or "".
func reasonOf(j *rest.Job) string {
	if j.Reason == "None" || j.FilesFailed() {
		return ""
	}
	return j.Reason
}

// sentenceOf returns why j waits or has failed, as squeue shows it: the
// controller's description or, without one, the word for the reason.
func sentenceOf(j *rest.Job) string {
	if j.FilesFailed() {
		return filesFailed
	}
	return cmp.Or(j.Description, reasonOf(j))
}

// placementCell returns a cell with the nodes of j or, if it has none, with the
// reason.
func placementCell(j *rest.Job) table.Cell {
	reason := sentenceOf(j)
	if j.Nodes != "" || reason == "" {
		return textCell(j.Nodes)
	}
	return textCell("(" + reason + ")")
}

func jobGPUCell(j *rest.Job) table.Cell {
	n := j.GPUs()
	if n == 0 {
		return textCell("")
	}
	return countCell(strconv.FormatInt(n, 10), float64(n))
}

func jobMemoryCell(j *rest.Job) table.Cell {
	text := strings.ReplaceAll(formatJobMemory(j), " per ", "/")
	if text == "" {
		return textCell("")
	}
	return countCell(text, float64(max(j.MemoryNode.Int(), j.MemoryCPU.Int())))
}

// startOf returns the start time of j. For a pending job it is unset: the
// server may send the expected start.
func startOf(j *rest.Job) rest.Number {
	const never = 1<<32 - 2 // slurmdbd's start time of jobs that were cancelled before they started
	if j.BaseState() == "PENDING" || j.Started.Int() >= never {
		return rest.Number{}
	}
	return j.Started
}

// expectedCell returns a cell with the start time of j, which for a pending job is
// the expected one. Jobs without one are sorted last.
func expectedCell(j *rest.Job) table.Cell {
	if start := j.Started; j.BaseState() == "PENDING" && start.Int() > 0 {
		return countCell(formatTime(start), start.Value)
	}
	if c := timeCell(startOf(j)); c.Text != "" {
		return c
	}
	return countCell("", math.Inf(1))
}

// endOf returns the end time of j. For an active job it is unset: the server
// may send the time at which the time limit ends.
func endOf(j *rest.Job) rest.Number {
	if j.Active() {
		return rest.Number{}
	}
	return j.Ended
}

// exitCell returns a cell with the exit code of j or, after a colon, the number
// of the signal that ended it.
func exitCell(j *rest.Job) table.Cell {
	if j.Active() {
		return textCell("")
	}
	code, signal := j.Exit.Code.Int(), j.Exit.Signal.ID.Int()
	if signal > 0 {
		return countCell(fmt.Sprintf("%d:%d", code, signal), float64(128+signal))
	}
	return countCell(strconv.FormatInt(code, 10), float64(code))
}
