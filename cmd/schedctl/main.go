// Command schedctl lists, submits, follows, changes and cancels jobs, creates
// tokens, and runs the whole system in a demo.
//
//	schedctl jobs|nodes|partitions|history|job ID|usage|show|ping|top|watch|wait ID
//	schedctl submit FILE
//	schedctl cancel|hold|release|requeue|update ID...
//	schedctl mcp [--allow-changes]
//	schedctl token [username=U] [lifespan=SECONDS]
//	schedctl token explain
//	schedctl explain REQUEST-ID [FILE...]
//	schedctl demo [--listen HOST:PORT] [--once] [--tls]
//
// Package cli contains all commands except token and demo. They use the REST
// API of a gateway, or of handlers in this process, which send requests to the
// daemons of a configuration (package cli/direct). The token command always
// sends its request to the controller.
//
// Results go to stdout, in lines that programs can parse. Errors go to stderr
// as error: and hint: lines. schedctl(1) lists the exit statuses.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"schedrestd/bundled/demo"
	"schedrestd/cli"
	"schedrestd/cli/direct"
	"schedrestd/conf"
	"schedrestd/internal/completion"
	"schedrestd/internal/errs"
	"schedrestd/internal/fips"
	"schedrestd/internal/release"
	"schedrestd/internal/zone"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run runs the command with args and returns the exit status.
func run(args []string, out, errOut io.Writer) int {
	cmd := root()
	if completion.IsRequest(args) {
		completion.PlainUsages(cmd)
	}
	cmd.SetArgs(args)
	cmd.SetOut(out)
	cmd.SetErr(errOut)
	// The demo handles signals itself. All other commands stop when they
	// receive SIGINT or SIGTERM.
	ctx := context.Background()
	if len(args) == 0 || args[0] != "demo" {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
	}
	err := zone.SetLocal()
	switch {
	case err != nil:
	case len(args) > 0 && elsewhere[args[0]] != "": // before its options are read
		err = unknownCommand(cmd, args[0])
	default:
		err = cmd.ExecuteContext(ctx)
	}
	if status, ok := errors.AsType[demo.Status](err); ok {
		return int(status)
	}
	exitErr, ok := errors.AsType[*cli.ExitError](cli.WithStatus(err))
	if !ok {
		return 0
	}
	if exitErr.Err != nil {
		printError(errOut, exitErr.Err)
	}
	return exitErr.Status
}

// root returns the command tree.
func root() *cobra.Command {
	var configPath string
	cmd := &cobra.Command{
		Use:   "schedctl",
		Short: "List, submit, follow, change and cancel the jobs of a cluster",
		Long: `schedctl lists, submits, follows, changes and cancels jobs of a cluster. It sends requests
to a gateway (schedrestd, or slurmrestd from Slurm 24.11 on), whose address is in --url or
SCHED_URL. Without a gateway it sends them to the daemons of the configuration in -f or
SCHED_CONF. With a token in SCHED_JWT it acts as the token's user. Without one it acts as the
user who runs it, which needs a UNIX socket of the gateway or of the daemons.

token always sends its request to the controller of a configuration.`,
		Version:       fips.Version(release.Build()),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.Flags().BoolP("version", "V", false, "print the version and exit")
	cmd.PersistentFlags().StringVarP(&configPath, "config", "f", "",
		"configuration of the cluster (default: $SCHED_CONF, or the usual path)")
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	cmd.CompletionOptions.HiddenDefaultCmd = true
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		usage := errs.New(errs.Malformed, "%s", err)
		if cmd.HasParent() {
			return usage.WithHint("see %s --help", cmd.CommandPath())
		}
		return usage.WithHint("the options of a command follow its name, as in schedctl jobs --verbose")
	})
	cmd.Args = func(cmd *cobra.Command, words []string) error {
		if len(words) == 0 {
			return nil
		}
		return unknownCommand(cmd, words[0])
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() } // without a function to run, cobra ignores Args
	dial := func() (*direct.Cluster, error) { return direct.Open(configPath, tokenFromEnv, cmd.ErrOrStderr()) }
	token := tokenCommand(dial)
	token.AddCommand(explainCommand(&configPath))
	token.AddCommand(gatewayTokenCommands(&configPath)...)
	cmd.AddCommand(token, demoCommand(), explainRequestCommand())
	cmd.AddCommand(cli.Commands()...)
	cli.RefuseEmptyValues(cmd)
	completion.WithoutPackage(cmd, nil)
	return cmd
}

// A connector opens a command's connection to the controller. The command calls
// the connector when the connection is needed.
type connector func() (*direct.Cluster, error)

// printError prints err, one problem per line, and then a hint if there is one.
func printError(w io.Writer, err error) {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(w, "error: %s\n", strings.TrimRight(line, "\n"))
	}
	hint := errs.HintOf(err)
	if hint == "" && errs.KindOf(err) == errs.Unauthenticated {
		token, _ := conf.Env("SCHED_JWT")
		hint = refusalHint(token != "", os.Geteuid(), os.Getegid())
	}
	if hint != "" {
		fmt.Fprintf(w, "hint: %s\n", hint)
	}
}
