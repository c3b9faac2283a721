package cli

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"schedrestd/cli/rest"
	"schedrestd/cli/table"
)

func jobsCommand() *cobra.Command {
	var o options
	var f filter
	cmd := &cobra.Command{
		Use:   "jobs",
		Short: "List jobs",
		Long: `jobs lists the jobs that wait, run or complete. With --all it also lists jobs that ended
some minutes ago and that the controller still has.`,
		Example: "  schedctl jobs --me\n  schedctl jobs --state PENDING --partition gpu -o json",
		Args:    cobra.NoArgs,
	}
	o.connectFlags(cmd)
	o.outputFlag(cmd)
	f.flags(cmd)
	cmd.Flags().BoolVarP(&f.all, "all", "a", false, "also jobs that have ended")
	o.completeFilter(cmd)
	return setRun(cmd, func(cmd *cobra.Command, _ []string) error {
		if err := o.checkOutput(); err != nil {
			return err
		}
		c, err := o.dialWithFilter(cmd.Context(), &f)
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		if d := o.document(out, "jobs"); d != nil {
			_, err := c.RawJobs(cmd.Context(), func(j *rest.Job, text json.RawMessage) error {
				if !f.matches(j) {
					return nil
				}
				return d.Add(text)
			})
			if err != nil {
				return err
			}
			return d.Close()
		}
		rows, err := c.selectJobs(cmd, &f)
		if err != nil {
			return err
		}
		return jobTable(rows, time.Now()).Write(out, table.TerminalOf(out).Style())
	})
}

// selectJobs returns the jobs that f selects, sorted by id.
func (c *connection) selectJobs(cmd *cobra.Command, f *filter) ([]*rest.Job, error) {
	var rows []*rest.Job
	_, err := c.Jobs(cmd.Context(), nil, func(j *rest.Job) error {
		if f.matches(j) {
			rows = append(rows, trimJob(j))
		}
		return nil
	})
	slices.SortFunc(rows, func(a, b *rest.Job) int { return int(int64(a.ID) - int64(b.ID)) })
	return rows, err
}

// trimJob returns a copy of j without the fields that lists do not show.
func trimJob(j *rest.Job) *rest.Job {
	return &rest.Job{ID: j.ID, ArrayJob: j.ArrayJob, ArrayTask: j.ArrayTask, ArrayTasks: j.ArrayTasks, Name: j.Name, User: j.User,
		Partition: j.Partition, State: j.State, Reason: j.Reason, Started: j.Started, Ended: j.Ended, TimeLimit: j.TimeLimit,
		CPUs: j.CPUs, NodeCount: j.NodeCount, Nodes: j.Nodes, Exit: j.Exit}
}

// jobTable returns a table of jobs. For a running job, the table shows the time
// from the job's start to now.
func jobTable(jobs []*rest.Job, now time.Time) *table.Table {
	t := table.New(
		table.Column{Heading: "JOBID"},
		table.Column{Heading: "PARTITION", Shrink: 9},
		table.Column{Heading: "NAME", Shrink: 8},
		table.Column{Heading: "USER", Shrink: 8},
		table.Column{Heading: "STATE"},
		table.Column{Heading: "TIME", Right: true},
		table.Column{Heading: "LIMIT", Right: true},
		table.Column{Heading: "NODES", Right: true},
		table.Column{Heading: "CPUS", Right: true},
		table.Column{Heading: "NODELIST(REASON)", Shrink: 12},
	)
	for _, j := range jobs {
		placement := j.Nodes
		if placement == "" && j.Reason != "" && j.Reason != "None" {
			placement = "(" + j.Reason + ")"
		}
		t.Add(
			textCell(j.Label()),
			textCell(j.Partition),
			textCell(j.Name),
			textCell(j.User),
			stateCell(j.State),
			textCell(formatDuration(j.Elapsed(now))),
			textCell(formatLimit(j.TimeLimit)),
			numberCell(j.NodeCount),
			numberCell(j.CPUs),
			textCell(placement),
		)
	}
	return t
}
