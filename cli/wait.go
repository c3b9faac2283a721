package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"schedrestd/cli/rest"
	"schedrestd/internal/printable"
)

func waitCommand() *cobra.Command {
	var o options
	var until string
	var limit time.Duration
	states := []string{rest.UntilEnded, rest.UntilRunning}
	cmd := &cobra.Command{
		Use:   "wait ID...",
		Short: "Wait until jobs have ended",
		Long: `wait exits when all jobs have ended, with the exit code of the first of them that failed,
as submit --wait does. With --until running it exits when all jobs have started, or have
ended.`,
		Example: "  schedctl wait 12 13 && schedctl submit next.sh\n  schedctl wait --max-wait 10m $(schedctl submit job.sh)",
		Args:    atLeastOneJob,
	}
	o.connectFlags(cmd)
	cmd.Flags().StringVar(&until, "until", rest.UntilEnded, "`STATE` to wait for: "+orList(states)+"; an array runs if one of its tasks does")
	cmd.RegisterFlagCompletionFunc("until", cobra.FixedCompletions(states, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().DurationVar(&limit, "max-wait", 0, "give up after this time with the exit status 124; 0 for no limit")
	cmd.RegisterFlagCompletionFunc("max-wait", cobra.NoFileCompletions)
	cmd.ValidArgsFunction = o.completeJobs(&filter{})
	return setRun(cmd, func(cmd *cobra.Command, ids []string) error {
		switch {
		case !slices.Contains(states, until):
			return usageError("--until %s: unknown state", printable.Text(until)).WithHint("use %s", orList(states))
		case limit < 0:
			return usageError("--max-wait %s: less than 0", limit)
		}
		ids, err := expandIDs(ids)
		if err != nil {
			return err
		}
		ctx := cmd.Context()
		if limit > 0 {
			limited, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			ctx = limited
		}
		c, err := o.dial(ctx)
		if err == nil {
			err = c.awaitJobs(ctx, ids, &await{until: until})
		}
		if ctx.Err() == context.DeadlineExceeded {
			return &ExitError{statusTimeout, fmt.Errorf("the jobs have not reached the state %s within %s", until, limit)}
		}
		return err
	})
}
