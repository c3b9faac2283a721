// Command schedctl lists, submits, follows and cancels jobs through a gateway,
// sends requests to the controller, and runs the whole system in a demo.
//
//	schedctl jobs|nodes|partitions|job ID|submit FILE|watch|top
//	schedctl token [username=U] [lifespan=SECONDS]
//	schedctl ping
//	schedctl show node|job [NAME]
//	schedctl cancel ID...
//	schedctl demo [--listen HOST:PORT] [--once]
//
// The commands in the first line use the REST API (package cli). The commands
// token, ping, show and cancel send requests to the controller that the
// configuration names. Without a token in SCHED_JWT, they can use only the
// controller's UNIX socket, on which the kernel identifies the user of this
// process. With a token, they try that socket first and then TCP. The cancel
// command uses the REST API instead if the user gives a URL, a token file or an
// option that only REST supports.
//
// Results go to stdout, in lines that programs can parse. Errors go to stderr
// as error: and hint: lines. After an error, the exit status is 1. Commands
// that use the REST API also have other exit statuses, which schedctl(1) lists.
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

	"schedrestd/cli"
	"schedrestd/cli/direct"
	"schedrestd/conf"
	"schedrestd/demo"
	"schedrestd/errs"
	"schedrestd/release"
	"schedrestd/zone"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run runs the command with args and returns the exit status.
func run(args []string, out, errOut io.Writer) int {
	cmd := root()
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
	if err == nil {
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
		Short: "List, submit, follow and cancel the jobs of a cluster",
		Long: `schedctl lists, submits, follows and cancels jobs through a gateway: schedrestd, or
slurmrestd from Slurm 24.11 on. --url or SCHED_URL is its address.

token, ping, show and cancel send requests to the controller of the configured cluster.
With a token in SCHED_JWT they act as the token's user. Without one they act as the user
who runs them, which needs the controller's UNIX socket.`,
		Version:       release.Build(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.Flags().BoolP("version", "V", false, "print the version and exit")
	cmd.PersistentFlags().StringVarP(&configPath, "config", "f", "",
		"configuration of the cluster (default: $SCHED_CONF, or the usual path)")
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	cmd.CompletionOptions.HiddenDefaultCmd = true
	dial := func() (*direct.Cluster, error) { return direct.Open(configPath, tokenFromEnv, cmd.ErrOrStderr()) }
	cmd.AddCommand(tokenCommand(dial), demoCommand())
	cmd.AddCommand(cli.Commands()...)
	cli.RefuseEmptyValues(cmd)
	completeWithoutPackage(cmd)
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
