// Command scheddbd is the shipped accounting daemon: it keeps the jobs of a
// cluster of one machine. It runs in the foreground and logs to stderr.
//
//	scheddbd [-f CONF] [-v]
//
// SIGINT and SIGTERM end it: requests that are being answered are finished, exit status 0.
// What keeps it from starting is printed as error: and hint: lines, exit status 1.
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
	"schedrestd/dbd"
	"schedrestd/errs"
	"schedrestd/release"
)

// defaultConf is where the configuration is when -f does not say.
const defaultConf = "/etc/sched/scheddbd.conf"

func main() {
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
	path, verbose := defaultConf, false
	cmd := &cobra.Command{
		Use:           "scheddbd",
		Short:         "Keep the accounting of a cluster of one machine",
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
	cmd.Flags().StringVarP(&path, "config", "f", path, "configuration of the accounting daemon")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "log more")
	cmd.CompletionOptions.DisableDefaultCmd = true
	return cmd
}

func serve(ctx context.Context, path string, log *slog.Logger) error {
	c, warnings, err := conf.ReadDbd(path)
	for _, w := range warnings {
		log.Warn("configuration", "at", w.String())
	}
	if err != nil {
		return err
	}
	return dbd.Run(ctx, c, log)
}
