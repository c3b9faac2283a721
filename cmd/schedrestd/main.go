// The runtime would keep files of the cgroup open, in the one process that may be root.
//
//go:debug containermaxprocs=0

// Command schedrestd is the parent of the REST gateway: it owns the listeners, asks
// the kernel who connects, and hands each connection to a schedrestd-worker. It
// reads no byte of a connection.
//
//	schedrestd [-f CONF] [-u USER [-g GROUP]] [LISTEN...]
//
// This file is the flow. What was asked for is in options.go and environment.go, what the
// configuration makes of it in setup.go and plugins.go, what a person sees in help.go,
// list.go and completion.go. What keeps it from starting is printed as error: and hint:
// lines, exit status 1.
package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"schedrestd/conf"
	"schedrestd/errs"
	"schedrestd/privsep"
	"schedrestd/release"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, standardError())) }

// run is main without the process: arguments in, exit status out.
func run(args []string, out, errOut io.Writer) int {
	cmd := command(errOut)
	cmd.SetArgs(args)
	cmd.SetOut(out)
	cmd.SetErr(errOut)
	if err := cmd.Execute(); err != nil {
		complain(errOut, err)
		abortIfAsked(errOut)
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
		Use:           "schedrestd",
		Version:       release.Build(),
		Args:          cobra.ArbitraryArgs, // LISTEN
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.read(cmd.Flags(), args); err != nil {
				return err
			}
			switch {
			case o.listAsked():
				return o.list(cmd.OutOrStdout())
			case o.document:
				return o.printDocument(cmd.OutOrStdout())
			case o.confinement:
				return checkConfinement(o, cmd.OutOrStdout(), errOut)
			}
			return serve(o, errOut)
		},
	}
	o.flags(cmd.Flags())
	help(cmd)
	complete(cmd)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return errs.New(errs.Invalid, "%v", err).WithHint("schedrestd --help lists the options")
	})
	return cmd
}

// read puts together what the command line and, where that is silent, the environment ask for.
func (o *options) read(f *pflag.FlagSet, args []string) error {
	o.listen = args
	o.auth.fromFlag(f.Lookup("auth"))
	o.parsers.fromFlag(f.Lookup("data-parser"))
	o.content.fromFlag(f.Lookup("openapi"))
	if err := o.check(f); err != nil {
		return err
	}
	return o.fromEnvironment()
}

// serve is the program: what was asked for, checked against the configuration, until a
// signal ends it or, in inetd mode, the client does.
func serve(o options, errOut io.Writer) error {
	signal.Ignore(syscall.SIGUSR1) // until there is something to show
	signal.Ignore(syscall.SIGPIPE) // whoever reads the log may go before it is told that this serves
	if err := o.sound(); err != nil {
		return err
	}
	sockets, err := privsep.Activated()
	if err != nil {
		return err
	}
	path, err := conf.Find(o.conf)
	if err != nil {
		return err
	}
	r := newReloader(o, path, errOut)
	if r.mode = o.runMode(sockets, os.Stdin); r.mode != listening {
		r.usual = r.mode.level()
	}
	config, err := r.start()
	if err != nil {
		return err
	}
	config.Activated, config.Output = sockets, errOut
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if r.mode != listening {
		r.mode.announce(o, config.Log)
		return privsep.Inetd(signals, config, os.Stdin, os.Stdout)
	}
	signal.Notify(signals, syscall.SIGHUP)
	config.Reload = r
	return privsep.Run(signals, config)
}
