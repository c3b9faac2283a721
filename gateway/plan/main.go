// Package plan implements the process that reads the administrator's settings:
// the command line, the environment and the configuration files. It also looks
// up the users and hosts that they name. It never has privileges. schedrestd,
// which may be root, starts this process and opens the configuration files for
// it. The process answers with a Plan, which consists of numbers and strings of
// limited length.
//
// If an error prevents the gateway from starting, this process prints lines
// that begin with "error:" and "hint:", and exits with status 1. It also prints
// the help text, the version, lists, the OpenAPI document and scripts for shell
// completion.
//
// The function Main is in this file. Package option parses the input; planner.go,
// setup.go and plugins.go combine it with the configuration; help.go, list.go and
// completion.go print text for people; parent.go communicates with schedrestd.
package plan

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"schedrestd/gateway/plan/option"
	"schedrestd/internal/completion"
	"schedrestd/internal/errs"
	"schedrestd/internal/fips"
	"schedrestd/internal/release"
	"schedrestd/ipc"
	"schedrestd/security/self"
)

// Main runs the process and returns its exit status: 1 if the gateway must not
// start, or 2 if the process was not started by schedrestd.
func Main() int {
	channel, err := ipc.Open(ipc.ConfigFD, ipc.Config, ipc.Parent)
	if err != nil {
		if release.VersionRequested(os.Args) {
			fmt.Println("schedrestd-config " + fips.Version(release.Build()))
			return 0
		}
		fmt.Fprintln(os.Stderr, "error: this program is started by schedrestd, not by hand")
		return 2
	}
	p := parent{channel: channel}
	err = self.ConfineReader()
	if err == nil {
		err = p.receiveSetup()
	}
	if err != nil {
		printError(os.Stderr, err)
		return 1
	}
	return runCommand(&p, p.start, os.Args[1:], os.Stdout, os.Stderr)
}

// runCommand runs the command with args and returns its exit status.
func runCommand(h host, start ipc.ConfigSetup, args []string, out, errOut io.Writer) int {
	cmd := newCommand(h, start, errOut)
	cmd.SetArgs(args)
	cmd.SetOut(out)
	cmd.SetErr(errOut)
	completion.WithoutPackage(cmd, args)
	err := cmd.Execute()
	if err != nil {
		err = option.SpelledAsSet(err)
	}
	if err != nil && start.Reload {
		err = h.SendFailure(err)
	}
	if err != nil {
		printError(errOut, err)
		return 1
	}
	return 0
}

// printError prints err. Each problem is on a line of its own.
func printError(w io.Writer, err error) {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(w, "error: %s\n", strings.TrimRight(line, "\n"))
	}
	if hint := errs.HintOf(err); hint != "" {
		fmt.Fprintf(w, "hint: %s\n", hint)
	}
}

func newCommand(h host, start ipc.ConfigSetup, errOut io.Writer) *cobra.Command {
	o := options{host: h, start: start}
	cmd := &cobra.Command{
		Use:           "schedrestd",
		Version:       fips.Version(release.Build()),
		Args:          cobra.ArbitraryArgs, // LISTEN arguments
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Read(cmd.Flags(), args); err != nil {
				return err
			}
			switch {
			case o.wantsList():
				return o.printList(cmd.OutOrStdout())
			case o.GenerateSpec:
				return o.printDocument(cmd.OutOrStdout())
			}
			return o.sendPlan(cmd.OutOrStdout(), errOut)
		},
	}
	o.AddFlags(cmd.Flags())
	setHelp(cmd)
	addCompletion(cmd)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return errs.New(errs.Invalid, "%v", err).WithHint("schedrestd --help lists the options")
	})
	return cmd
}

// sendPlan checks the options against the configuration and sends the Plan to
// the parent.
func (o *options) sendPlan(out, errOut io.Writer) error {
	signal.Ignore(syscall.SIGPIPE) // the program that reads the log may exit before the gateway is ready
	if err := o.validate(); err != nil {
		return err
	}
	from, err := o.findConfiguration()
	if err != nil {
		return err
	}
	logTo := ""
	if o.Check {
		logTo = o.describeLog()
		o.Setup.Log = "text" // for the person who checks
	}
	p := newPlanner(*o, from, errOut)
	if o.Check || o.CheckConfinement {
		p.defaultLevel = slog.LevelWarn // this process should not log a normal start
	} else if p.mode = o.runMode(); p.mode != listening {
		p.defaultLevel = p.mode.level()
	}
	plan, err := p.plan()
	if err != nil {
		return err
	}
	if o.Check {
		o.printReport(out, plan, p.cluster, p.from, logTo)
		if o.Run.Netns == "" {
			if err := o.checkAddresses(append(plan.Metrics, plan.Listen...)); err != nil {
				return err
			}
		}
	}
	if plan.Mode == ipc.ModeInetd {
		p.mode.announce(*o, p.log)
	}
	return o.host.Send(plan)
}
