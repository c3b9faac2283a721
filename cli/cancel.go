package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"schedrestd/cli/rest"
	"schedrestd/errs"
	"schedrestd/printable"
)

func cancelCommand() *cobra.Command {
	var o options
	var f filter
	var signal string
	cmd := &cobra.Command{
		Use:   "cancel [ID...]",
		Short: "Cancel jobs",
		Long: `cancel cancels your own pending or running jobs. Root and the scheduler's user may
cancel the jobs of all users. If you give ids and options that select jobs, cancel cancels
only those of the named jobs that the options select.`,
		Example: "  schedctl cancel 12 13\n  schedctl cancel --me --state PENDING\n  schedctl cancel 12 --state PENDING",
		Args:    cobra.ArbitraryArgs,
	}
	o.connectFlags(cmd)
	f.flags(cmd)
	o.completeFilter(cmd)
	cmd.Flags().StringVarP(&signal, "signal", "s", "", "send `SIGNAL`, such as USR1 or TERM, instead of ending the job")
	signals := []string{"TERM", "KILL", "INT", "HUP", "USR1", "USR2", "STOP", "CONT"}
	cmd.RegisterFlagCompletionFunc("signal", cobra.FixedCompletions(signals, cobra.ShellCompDirectiveNoFileComp))
	cmd.ValidArgsFunction = o.completeJobs((*rest.Job).Active)
	run := func(cmd *cobra.Command, ids []string) error {
		if len(ids) == 0 && !f.hasCondition() {
			return usageError("cancel: no job is selected").WithHint("name jobs, or select them, for example with --me")
		}
		ids, err := expandIDs(ids)
		if err != nil {
			return err
		}
		c, err := o.dialWithFilter(cmd.Context(), &f)
		if err != nil {
			return err
		}
		var joined error
		targets := ids
		if f.hasCondition() {
			targets, err = c.selectTargets(cmd, &f, ids)
			joined = joinErrors(joined, err)
		}
		for _, id := range targets {
			err := c.Cancel(cmd.Context(), id, signal)
			if f.hasCondition() && errs.KindOf(err) == errs.Conflict {
				continue // the job has ended since the server listed it
			}
			if err != nil {
				joined = joinErrors(joined, wrapJobError(id, err))
			}
		}
		return joined
	}
	return setRun(cmd, run)
}

// wrapJobError adds the job id to an error.
func wrapJobError(id string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return &errs.Error{Kind: errs.KindOf(err), Message: "job " + printable.Text(id), Err: err, Hint: errs.HintOf(err)}
}
