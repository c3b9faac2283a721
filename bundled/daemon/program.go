package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"schedrestd/conf"
	"schedrestd/internal/closeonexec"
	"schedrestd/internal/errs"
	"schedrestd/internal/fips"
	"schedrestd/internal/notify"
	"schedrestd/internal/release"
	"schedrestd/internal/zone"
)

// A Program is the command that runs a daemon. It runs in the foreground and
// logs to stderr. Its usage is:
//
//	NAME [-f CONF] [-v]
//
// After SIGINT or SIGTERM the command answers the pending requests and exits
// with status 0. If it can't start, it prints lines that begin with "error:" or
// "hint:", and exits with status 1.
type Program struct {
	Name     string
	Short    string // one-line description
	Conf     string // default path of the configuration; "": Serve chooses it
	ConfHelp string // help text of -f
	Serve    func(ctx context.Context, path string, log *slog.Logger) error
}

// Run runs the program with args and returns the exit status.
func (p Program) Run(args []string, errOut io.Writer) int {
	cmd := p.command()
	cmd.SetArgs(args)
	cmd.SetErr(errOut)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	notify.ClearEnv()
	_, _ = passedSockets() // removes the service manager's variables from the environment; Listen reports any error
	go notify.Watchdog(func() {})
	err := errors.Join(errs.Wrap(closeonexec.Mark(), errs.Internal, "mark descriptors close-on-exec"), zone.SetLocal())
	if err == nil {
		err = cmd.ExecuteContext(ctx)
	}
	if err == nil {
		return 0
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(errOut, "error: %s\n", strings.TrimRight(line, "\n"))
	}
	if hint := errs.HintOf(err); hint != "" {
		fmt.Fprintf(errOut, "hint: %s\n", hint)
	}
	return 1
}

func (p Program) command() *cobra.Command {
	path, verbose := p.Conf, false
	cmd := &cobra.Command{
		Use:           p.Name,
		Short:         p.Short,
		Args:          cobra.NoArgs,
		Version:       fips.Version(release.Build()),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			level := slog.LevelInfo
			if verbose {
				level = slog.LevelDebug
			}
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
			return p.Serve(cmd.Context(), path, log)
		},
	}
	cmd.Flags().StringVarP(&path, "config", "f", path, p.ConfHelp)
	cmd.Flags().BoolP("version", "V", false, "print the version and exit")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "log more")
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	cmd.CompletionOptions.DisableDefaultCmd = true
	return cmd
}

// Warn logs the warnings about a configuration.
func Warn(log *slog.Logger, warnings []conf.Warning) {
	for _, w := range warnings {
		log.Warn("configuration warning", "at", w.String())
	}
}
