// Command scheddbd is the bundled accounting daemon. It stores the jobs of a
// cluster that has one machine. It runs in the foreground and logs to stderr.
//
//	scheddbd [-f CONF] [-v]
//
// After SIGINT or SIGTERM it answers the pending requests and exits with status
// 0. If it can't start, it prints error: and hint: lines and exits with status
// 1.
package main

import (
	"context"
	"log/slog"
	"os"

	"schedrestd/bundled/daemon"
	"schedrestd/bundled/dbd"
	"schedrestd/conf"
)

var program = daemon.Program{
	Name:     "scheddbd",
	Short:    "Store the jobs of a cluster of one machine",
	Conf:     "/etc/sched/scheddbd.conf",
	ConfHelp: "configuration of the accounting daemon",
	Serve:    serve,
}

func main() {
	os.Exit(program.Run(os.Args[1:], os.Stderr))
}

func serve(ctx context.Context, path string, log *slog.Logger) error {
	c, warnings, err := conf.ReadDbd(path)
	daemon.Warn(log, warnings)
	if err != nil {
		return err
	}
	return dbd.Serve(ctx, c, log)
}
