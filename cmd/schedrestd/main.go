// Without this setting the Go runtime would keep files of the cgroup open in
// this process, which is the only one that may run as root.
//
//go:debug containermaxprocs=0

// Command schedrestd is the parent process of the REST gateway. It owns the
// listeners, and asks the kernel who the peer of each connection is. It passes
// the connection to schedrestd-dispatcher, which chooses a worker. The parent
// reads nothing from a connection. Another process, schedrestd-config, runs
// without privileges and reads the command line and the configuration. It sends
// the parent a Plan, which says what to open and start.
//
//	schedrestd [-f CONF] [-u USER [-g GROUP]] [LISTEN...]
//
// If it can't start, it prints error: and hint: lines, and exits with status 1.
package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"schedrestd/internal/errs"
	"schedrestd/internal/loglevel"
	"schedrestd/ipc"
	"schedrestd/privsep"
	"schedrestd/privsep/inetd"
	"schedrestd/privsep/listen"
	"schedrestd/privsep/planner"
)

func main() {
	errOut := standardError()
	status, err := run(errOut)
	if err != nil {
		printError(errOut, err)
		status = 1
	}
	if status != 0 {
		abortIfRequested(errOut)
	}
	os.Exit(status)
}

// run gets a Plan and executes it. It returns after a signal or, in inetd mode,
// when the client disconnects.
func run(errOut *os.File) (status int, err error) {
	signal.Ignore(syscall.SIGUSR1) // until the handler that logs the counters is installed
	sockets, activationErr := listen.Activated()
	if err := privsep.CheckStart(); err != nil {
		return 1, err
	}
	p, err := planner.New(os.Args[1:], os.Environ(), os.Stdout, errOut,
		ipc.ConfigSetup{PassedSockets: len(sockets) > 0, Terminal: inetd.IsTerminal(os.Stdin)})
	if err != nil {
		return 1, err
	}
	plan, status, err := p.Plan()
	if plan == nil || err != nil {
		return status, err
	}
	if activationErr != nil {
		return 1, activationErr
	}
	signal.Ignore(syscall.SIGPIPE) // the reader of the log may exit before the gateway is ready
	level := new(slog.LevelVar)
	level.Set(slog.Level(plan.LogLevel))
	c := privsep.Config{PackedPlan: *plan, Log: loglevel.New(plan.Setup.Log, errOut, level), Level: level, Activated: sockets, Reread: p.Replan, Limits: privsep.Defaults}
	signals := make(chan os.Signal, 4)
	switch plan.Mode {
	case ipc.ModeCheck, ipc.ModeRead:
		return 0, privsep.Check(c, os.Stdout)
	case ipc.ModeInetd:
		signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
		return 0, privsep.Inetd(signals, c, os.Stdin, os.Stdout)
	}
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1)
	return 0, privsep.Run(signals, c)
}

// printError prints err, one problem per line.
func printError(w io.Writer, err error) {
	fmt.Fprintf(w, "error: %s\n", strings.ReplaceAll(strings.TrimRight(err.Error(), "\n"), "\n", "\nerror: "))
	if hint := errs.HintOf(err); hint != "" {
		fmt.Fprintf(w, "hint: %s\n", hint)
	}
}

// standardError returns the file to which errors and the log are written. If
// inetd has passed the client's socket as both standard input and standard
// error, this file is /dev/null. Otherwise log lines would appear within the
// answers to the client.
func standardError() *os.File {
	if sameSocket(os.Stdin, os.Stderr) {
		if null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0); err == nil {
			return null
		}
		os.Exit(1) // no process can be started without it
	}
	return os.Stderr
}

func sameSocket(a, b *os.File) bool {
	x, err := a.Stat()
	if err != nil || x.Mode()&os.ModeSocket == 0 {
		return false
	}
	y, err := b.Stat()
	return err == nil && os.SameFile(x, y)
}
