// Command schedctld is the bundled controller: it queues batch jobs and runs
// them on this machine. It runs in the foreground and logs to stderr.
//
//	schedctld [-f CONF] [-v]
//
// After SIGINT or SIGTERM it answers the pending requests and exits with status
// 0. Jobs continue to run, each under its own step process, and the next
// schedctld takes them over. Nothing is lost if schedctld is killed. If it
// can't start, it prints error: and hint: lines and exits with status 1.
//
// If root starts schedctld, each job runs as the user who submitted it.
// Otherwise schedctld runs only jobs of its own user.
package main

import (
	"context"
	"log/slog"
	"os"

	"schedrestd/bundled/ctld"
	"schedrestd/bundled/ctld/step"
	"schedrestd/bundled/daemon"
	"schedrestd/conf"
	"schedrestd/internal/release"
)

var program = daemon.Program{
	Name:     "schedctld",
	Short:    "Queue batch jobs and run them on this machine",
	ConfHelp: "configuration of the cluster",
	Serve:    serve,
}

func main() {
	step.Main() // does not return in a process that is a job's step
	os.Exit(program.Run(os.Args[1:], os.Stderr))
}

func serve(ctx context.Context, path string, log *slog.Logger) error {
	path, err := conf.Find(path)
	if err != nil {
		return err
	}
	c, warnings, err := conf.Read(path)
	daemon.Warn(log, warnings)
	if err != nil {
		return err
	}
	return ctld.Serve(ctx, c, release.Version, log)
}
