// The runtime would keep files of the cgroup open, in the one process that may be root.
//
//go:debug containermaxprocs=0

// Command schedrestd is the parent of the REST gateway: it owns the listeners, asks
// the kernel who connects, and hands each connection to a schedrestd-worker. It
// reads no byte of a connection.
//
//	schedrestd [-f CONF] [-u USER [-g GROUP]] LISTEN...
//
// This file is the flow, options.go what was asked for, setup.go what the
// configuration makes of it. What keeps it from starting is printed as error: and hint:
// lines, exit status 1.
package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"schedrestd/errs"
	"schedrestd/privsep"
	"schedrestd/release"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main without the process: arguments in, exit status out.
func run(args []string, out, errOut io.Writer) int {
	cmd := command(errOut)
	cmd.SetArgs(args)
	cmd.SetOut(out)
	cmd.SetErr(errOut)
	if err := cmd.Execute(); err != nil {
		complain(errOut, err)
		return 1
	}
	return 0
}

// complain prints err for a person: each line of it is one problem.
func complain(w io.Writer, err error) {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(w, "error: %s\n", strings.TrimRight(line, "\n"))
	}
	if hint := errs.HintOf(err); hint != "" {
		fmt.Fprintf(w, "hint: %s\n", hint)
	}
}

func command(errOut io.Writer) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "schedrestd [flags] LISTEN...",
		Short: "Serve the scheduler over REST, in separated processes",
		Long: `Serve the scheduler over REST, in separated processes.

LISTEN is [host]:port or unix:/path; several may be given.`,
		Example: `  schedrestd -f /etc/slurm/slurm.conf -u restd -g restd 127.0.0.1:6820
  schedrestd -f sched.conf unix:/run/schedrestd/socket :6820`,
		Version:       release.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.listen = args
			for _, name := range []string{"max-connections", "threads"} {
				if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "0" {
					return errs.New(errs.Invalid, "--%s 0: not a number from 1 on", name)
				}
			}
			return serve(o, errOut)
		},
	}
	o.flags(cmd.Flags())
	cmd.CompletionOptions.DisableDefaultCmd = true
	return cmd
}

// serve is the program: what was asked for, checked against configuration and
// environment, until a signal ends it.
func serve(o options, errOut io.Writer) error {
	if err := o.fromEnvironment(); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(errOut, &slog.HandlerOptions{Level: o.level()}))
	cluster, err := configuration(o, log)
	if err != nil {
		return err
	}
	config, err := o.parent(cluster, log)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	return privsep.Run(signals, config)
}
