// Command schedctld is the shipped controller: it queues batch jobs and runs them on
// this machine. It runs in the foreground and logs to stderr.
//
//	schedctld [-f CONF] [-v]
//
// SIGINT and SIGTERM end it: requests that are being answered are finished, exit status 0.
// Jobs go on, each under a step process of its own, and the next schedctld takes them up;
// nothing is lost when it is killed, either. What keeps it from starting is printed as error:
// and hint: lines, exit status 1.
//
// Started by root it runs each job as the user who submitted it, else jobs of its own user alone.
package main

import (
	"context"
	"log/slog"
	"os"

	"schedrestd/conf"
	"schedrestd/ctld"
	"schedrestd/ctld/step"
	"schedrestd/daemon"
	"schedrestd/release"
)

var program = daemon.Program{
	Name:  "schedctld",
	Short: "Queue batch jobs and run them on this machine",
	About: "configuration of the cluster",
	Serve: serve,
}

func main() {
	step.Main() // does not return in a process that is to be a job's step
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
