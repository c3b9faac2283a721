package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"schedrestd/cli/script"
	"schedrestd/cli/table"
	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
)

// A change is what a command does with each of the jobs that the user selects.
// All such commands select jobs in the same way: with ids, with options, or with
// both. Ids and options never select more jobs than each of them alone.
type change struct {
	options
	filter
	dryRun bool

	done  string   // participle for the result, such as "cancelled"
	state []string // the states that options select if they name no state; nil for those of all active jobs
	apply func(ctx context.Context, c *connection, id string) error
}

// command adds the options to cmd and makes it apply the change.
func (ch *change) command(cmd *cobra.Command) *cobra.Command {
	ch.connectFlags(cmd)
	ch.filter.flags(cmd)
	ch.completeFilter(cmd)
	cmd.Flags().BoolVar(&ch.dryRun, "dry-run", false, "only list the jobs")
	cmd.ValidArgsFunction = ch.completeJobs(&ch.filter)
	if cmd.Args == nil {
		cmd.Args = cobra.ArbitraryArgs
	}
	return setRun(cmd, ch.run)
}

func (ch *change) run(cmd *cobra.Command, ids []string) error {
	ids, err := expandIDs(ids)
	if err != nil {
		return err
	}
	if len(ids) == 0 && !ch.hasCondition() {
		return usageError("%s: no job is selected", cmd.Name()).WithHint("name jobs, or select them, for example with --me")
	}
	if ch.hasCondition() && len(ch.states) == 0 {
		ch.states = append(ch.states, ch.state...)
	}
	hasCondition := ch.hasCondition()
	c, err := ch.dialWithFilter(cmd.Context(), &ch.filter)
	if err != nil {
		return err
	}
	var joined error
	if hasCondition || ch.dryRun {
		t, err := c.selectTargets(cmd, &ch.filter, ids)
		if err != nil {
			return err
		}
		if joined = t.err; ch.dryRun {
			return joinErrors(ch.list(cmd, t), joined)
		}
		ids = t.ids
	}
	changed, stopped := 0, false
	for _, id := range ids {
		done, err := ch.changeOne(cmd, c, id)
		if hasCondition && errs.KindOf(err) == errs.Conflict {
			continue // the job has ended since the server listed it
		}
		if err != nil {
			joined = joinErrors(joined, wrapError("job "+id, err))
		}
		if done {
			changed++
		}
		if stopped = isGeneral(cmd.Context(), err); stopped {
			break
		}
	}
	if changed > 0 || !stopped {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", countJobs(changed), ch.done)
	}
	return joinErrors(err, joined)
}

// changeOne changes one job and reports whether it did so. It skips a job that
// the options no longer select.
func (ch *change) changeOne(cmd *cobra.Command, c *connection, id string) (bool, error) {
	if len(ch.states) > 0 {
		same, err := c.isUnchanged(cmd.Context(), &ch.filter, id)
		if err != nil {
			return false, err
		}
		if !same {
			fmt.Fprintf(cmd.ErrOrStderr(), "warning: job %s was skipped: its state has changed\n", id)
			return false, nil
		}
	}
	err := ch.apply(cmd.Context(), c, id)
	return err == nil, err
}

// isGeneral reports whether requests for other jobs would fail as well: the
// server can't be reached, it does not accept the credential, or the user has
// pressed Ctrl-C.
func isGeneral(ctx context.Context, err error) bool {
	if err == nil {
		return false
	}
	kind := errs.KindOf(err)
	return ctx.Err() != nil || kind == errs.Unauthenticated || kind == errs.Unavailable
}

// isUnchanged reports whether f still selects the job, or all active tasks of
// the array, with this id. To change many jobs takes a while. In the meantime a
// pending job may have started, and to cancel it would lose its work.
func (c *connection) isUnchanged(ctx context.Context, f *filter, id string) (bool, error) {
	jobs, err := c.Job(ctx, id)
	if errs.KindOf(err) == errs.NotFound && err != nil {
		return false, nil
	}
	selected := false
	for i := range jobs {
		switch j := &jobs[i]; {
		case !j.Selects(id):
		case f.matches(j):
			selected = true
		case j.Active():
			return false, err
		}
	}
	return selected, err
}

// list prints the jobs that would be changed.
func (ch *change) list(cmd *cobra.Command, t *targets) error {
	out := cmd.OutOrStdout()
	l := listing[string]{columns: []column[string]{
		{Column: table.Column{Heading: "JOBID"}, cell: textCell},
		{Column: table.Column{Heading: "PARTITION", Shrink: 9, Rank: 1}, cell: func(id string) table.Cell { return textCell(t.jobs[id].Partition) }},
		{Column: table.Column{Heading: "NAME", Shrink: 8, Rank: 2}, cell: func(id string) table.Cell { return textCell(t.jobs[id].Name) }},
		{Column: table.Column{Heading: "USER", Shrink: 8, Rank: 3}, cell: func(id string) table.Cell { return textCell(t.jobs[id].User) }},
		{Column: table.Column{Heading: "STATE"}, cell: func(id string) table.Cell { return stateCell(t.jobs[id].State) }},
	}}
	if len(t.ids) > 0 {
		if err := l.table(t.ids).Write(out, table.TerminalOf(out).Style()); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%s would be %s\n", countJobs(len(t.ids)), ch.done)
	return err
}

func countJobs(n int) string {
	if n == 1 {
		return "1 job"
	}
	return fmt.Sprintf("%d jobs", n)
}

// wrapError adds an object such as "job 12" to an error, unless the error
// contains it.
func wrapError(object string, err error) error {
	if errors.Is(err, context.Canceled) || strings.Contains(err.Error(), object) {
		return err
	}
	return &errs.Error{Kind: errs.KindOf(err), Message: printable.Text(object), Err: err, Hint: errs.HintOf(err)}
}

func cancelCommand() *cobra.Command {
	var signal string
	ch := &change{done: "cancelled"}
	ch.apply = func(ctx context.Context, c *connection, id string) error { return c.cancelJob(ctx, id, signal) }
	cmd := ch.command(&cobra.Command{
		Use:   "cancel [ID...]",
		Short: "Cancel jobs",
		Long: `cancel cancels your own pending or running jobs. Root and the scheduler's user may
cancel the jobs of all users. If you give ids and options that select jobs, cancel cancels
only those of the named jobs that the options select. It prints the number of jobs; an array
that is cancelled as a whole counts as one. A component of a heterogeneous job that is
pending can't be cancelled alone.`,
		Example: "  schedctl cancel 12 13\n  schedctl cancel --me --state PENDING --dry-run\n  schedctl cancel 12 --state PENDING",
	})
	cmd.Flags().StringVarP(&signal, "signal", "s", "", "send `SIGNAL`, such as USR1 or TERM, instead of ending the job")
	signals := []string{"TERM", "KILL", "INT", "HUP", "USR1", "USR2", "STOP", "CONT"}
	cmd.RegisterFlagCompletionFunc("signal", cobra.FixedCompletions(signals, cobra.ShellCompDirectiveNoFileComp))
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		if signal != "" {
			ch.done = "signalled"
		}
		return run(cmd, ids)
	}
	return cmd
}

// cancelJob cancels the job with this id, or sends it the signal. It refuses a pending
// component of a heterogeneous job: slurmctld would cancel it, but never start the
// others, or with the id of the first component cancel all of them.
func (c *connection) cancelJob(ctx context.Context, id, signal string) error {
	if whole, _, ok := strings.Cut(id, "+"); ok {
		jobs, err := c.Job(ctx, id)
		if err != nil {
			return err
		}
		for i := range jobs {
			if jobs[i].BaseState() == "PENDING" {
				return errs.New(errs.Unsupported, "a pending component of a heterogeneous job can't be cancelled alone").
					WithHint("schedctl cancel %s cancels the whole job", whole)
			}
		}
	}
	return c.Cancel(ctx, id, signal)
}

func holdCommand() *cobra.Command {
	ch := &change{done: "held", state: []string{"PENDING"}}
	ch.apply = func(ctx context.Context, c *connection, id string) error {
		return c.Update(ctx, id, script.Job{"hold": true})
	}
	return ch.command(&cobra.Command{
		Use:   "hold [ID...]",
		Short: "Hold pending jobs",
		Long: `hold prevents jobs from starting until they are released. Select jobs as for cancel. Options
select only pending jobs, unless you give --state.`,
		Example: "  schedctl hold 12\n  schedctl hold --me --partition gpu",
	})
}

func releaseCommand() *cobra.Command {
	ch := &change{done: "released", state: []string{"PENDING"}}
	ch.apply = func(ctx context.Context, c *connection, id string) error {
		return c.Update(ctx, id, script.Job{"hold": false})
	}
	return ch.command(&cobra.Command{
		Use:   "release [ID...]",
		Short: "Release held jobs",
		Long: `release lets held jobs start. Select jobs as for cancel. Options select only pending jobs,
unless you give --state.`,
		Example: "  schedctl release 12\n  schedctl release --me",
	})
}

func requeueCommand() *cobra.Command {
	hold := false
	ch := &change{done: "requeued", state: []string{"RUNNING"}}
	ch.apply = func(ctx context.Context, c *connection, id string) error { return c.Requeue(ctx, id, hold) }
	cmd := ch.command(&cobra.Command{
		Use:   "requeue [ID...]",
		Short: "Stop running jobs and put them back into the queue",
		Long: `requeue ends running batch jobs and puts them back into the queue. Select jobs as for cancel.
Options select only running jobs, unless you give --state. It needs schedrestd, or slurmrestd
of Slurm 26.05 or newer.`,
		Example: "  schedctl requeue 12\n  schedctl requeue --me --node 'n[1-4]'",
	})
	cmd.Flags().BoolVar(&hold, "hold", false, "also hold the jobs")
	return cmd
}

func updateCommand() *cobra.Command {
	ch := &change{done: "updated"}
	cmd := ch.command(&cobra.Command{
		Use:   "update [flags] [ID...] -- SBATCH-OPTION...",
		Short: "Change jobs",
		Long: `update changes jobs. Select jobs as for cancel. The options of sbatch after -- are the
new values, as for submit. The controller decides which of them can be changed in the
state in which a job is.`,
		Example: "  schedctl update 12 -- --time=2:00:00 --partition=debug\n  schedctl update --me --state PENDING -- --nice=100",
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		dash := cmd.ArgsLenAtDash()
		if dash < 0 || dash == len(args) {
			return WithStatus(usageError("update: no new value is given").WithHint("options of sbatch are put after --, as in schedctl update 12 -- --time=60"))
		}
		job, err := script.Changes(args[dash:])
		if err != nil {
			return WithStatus(err)
		}
		ch.apply = func(ctx context.Context, c *connection, id string) error { return c.Update(ctx, id, job) }
		return WithStatus(ch.run(cmd, args[:dash]))
	}
	return cmd
}
