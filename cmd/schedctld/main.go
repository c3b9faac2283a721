// Command schedctld is the shipped controller: it queues batch jobs and runs them on
// this machine. It runs in the foreground and logs to stderr.
//
//	schedctld [-f CONF] [-v]
//
// SIGINT and SIGTERM end it: requests that are being answered are finished, exit status 0.
// Jobs go on, each under a step process of its own, and the next schedctld takes them up;
// nothing is lost when it is killed, either. What keeps it from starting is printed as error:
// and hint: lines, exit status 1.
//
// Started by root it runs each job as the user who submitted it, else jobs of its own user alone.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"schedrestd/conf"
	"schedrestd/ctld"
	"schedrestd/ctld/step"
	"schedrestd/errs"
	"schedrestd/release"
)

func main() {
	step.Main() // does not return in a process that is to be a job's step
	os.Exit(run(os.Args[1:], os.Stderr))
}

// run is main without the process: arguments in, exit status out.
func run(args []string, errOut io.Writer) int {
	cmd := command()
	cmd.SetArgs(args)
	cmd.SetErr(errOut)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := cmd.ExecuteContext(ctx); err != nil {
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(errOut, "error: %s\n", strings.TrimRight(line, "\n"))
		}
		if hint := errs.HintOf(err); hint != "" {
			fmt.Fprintf(errOut, "hint: %s\n", hint)
		}
		return 1
	}
	return 0
}

func command() *cobra.Command {
	path, verbose := "", false
	cmd := &cobra.Command{
		Use:           "schedctld",
		Short:         "Queue batch jobs and run them on this machine",
		Args:          cobra.NoArgs,
		Version:       release.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			level := slog.LevelInfo
			if verbose {
				level = slog.LevelDebug
			}
			return serve(cmd.Context(), path, slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level})))
		},
	}
	cmd.Flags().StringVarP(&path, "config", "f", "", "configuration of the cluster")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "log more")
	cmd.CompletionOptions.DisableDefaultCmd = true
	return cmd
}

func serve(ctx context.Context, path string, log *slog.Logger) error {
	path, err := conf.Find(path)
	if err != nil {
		return err
	}
	c, warnings, err := conf.Read(path)
	for _, w := range warnings {
		log.Warn("configuration", "at", w.String())
	}
	if err != nil {
		return err
	}
	return ctld.Serve(ctx, c, release.Version, log)
}
