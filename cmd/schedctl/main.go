// Command schedctl asks the controller, and shows the whole system in a demo.
//
//	schedctl token [username=U] [lifespan=SECONDS]
//	schedctl ping
//	schedctl show node|job [NAME]
//	schedctl cancel ID...
//	schedctl demo [--listen HOST:PORT] [--once]
//
// Who asks: with a token in SCHED_JWT its user, over TCP; else the user of this
// process, whom the kernel vouches for on the controller's UNIX socket.
//
// Results go to stdout in lines for programs to read; what went wrong to stderr as
// error: and hint: lines, with exit status 1.
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

	"schedrestd/conf"
	"schedrestd/demo"
	"schedrestd/errs"
	"schedrestd/release"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is main without the process: arguments in, exit status out.
func run(args []string, out, errOut io.Writer) int {
	cmd := root()
	cmd.SetArgs(args)
	cmd.SetOut(out)
	cmd.SetErr(errOut)
	// The demo has its own idea of what a signal means; everything else just ends.
	ctx := context.Background()
	if len(args) == 0 || args[0] != "demo" {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
	}
	err := cmd.ExecuteContext(ctx)
	if status, ok := errors.AsType[demo.Status](err); ok {
		return int(status)
	}
	if err != nil {
		explain(errOut, err)
		return 1
	}
	return 0
}

// root is the command tree.
func root() *cobra.Command {
	var conf string
	cmd := &cobra.Command{
		Use:   "schedctl",
		Short: "Ask the controller of the cluster",
		Long: `schedctl asks the controller of the cluster that the configuration describes.

It asks as the user of the token in SCHED_JWT when there is one, over TCP; else as
the user who runs it, over the controller's UNIX socket.`,
		Version:       release.Build(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.Flags().BoolP("version", "V", false, "print the version and exit")
	cmd.PersistentFlags().StringVarP(&conf, "config", "f", "", "configuration of the cluster (default: $SCHED_CONF, else where it is usually kept)")
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	cmd.CompletionOptions.HiddenDefaultCmd = true
	to := func() (*connection, error) { return connect(conf, cmd.ErrOrStderr()) }
	cmd.AddCommand(tokenCommand(to), pingCommand(to), showCommand(to), cancelCommand(to), demoCommand())
	return cmd
}

// connector makes the connection that a command needs, when it needs it.
type connector func() (*connection, error)

// explain prints err, a line for each problem, and what can be done about it.
func explain(w io.Writer, err error) {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(w, "error: %s\n", strings.TrimRight(line, "\n"))
	}
	hint := errs.HintOf(err)
	if hint == "" && errs.KindOf(err) == errs.Unauthenticated {
		token, _ := conf.Env("SCHED_JWT")
		hint = whyRefused(token != "", os.Geteuid(), os.Getegid())
	}
	if hint != "" {
		fmt.Fprintf(w, "hint: %s\n", hint)
	}
}
