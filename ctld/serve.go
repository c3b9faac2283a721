package ctld

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"runtime/debug"

	"schedrestd/conf"
	"schedrestd/daemon"
	"schedrestd/rpc/server"
)

// Serve is the daemon: it serves as c says until ctx ends, which is no error. Jobs that run then
// go on running, and the next controller takes them up.
func Serve(ctx context.Context, c *conf.Cluster, version string, log *slog.Logger) error {
	user, err := daemon.SchedUser(c.User)
	if err != nil {
		return err
	}
	if err := daemon.Judge(c.Files); err != nil {
		return err
	}
	if err := daemon.Harden(); err != nil {
		return err
	}
	keys, err := daemon.ReadKeys(ctx, c.Path, &c.Auth, user, log)
	if err != nil {
		return err
	}
	cfg, err := configure(c, user, keys.Key, version, log)
	if err != nil {
		return err
	}
	listeners, err := daemon.Listen(cfg.Address, cfg.Port, c.AuthSocket, socketMode(), user.UID)
	if err != nil {
		return err
	}
	controller, err := Open(cfg)
	if err != nil {
		return errors.Join(err, daemon.Close(listeners))
	}
	defer controller.Close()
	s := &server.Server{Handlers: controller.Handlers(), Limit: controller.Limit, Verify: keys.Verify, Super: daemon.Super(user.UID), Log: log,
		SpoolDir: controller.cfg.State, MaxBytes: allRequests, MaxUserBytes: userRequests}
	debug.SetGCPercent(garbagePercent)
	err = daemon.Serve(ctx, s, listeners, log, controller.Run)
	log.Info("ended; jobs go on", "jobs", len(controller.unended()))
	return err
}

// Bytes of requests that are in memory at a time, of all users and of one. One user's
// is enough for the longest submission.
const (
	allRequests  = 64 << 20
	userRequests = 16 << 20
)

// garbagePercent keeps the controller's memory close to what it holds. Most of that
// is jobs, which live long, so collecting twice as often costs little.
//
// A limit of the unit (MemoryMax=) would count the jobs too, and one on the
// controller's own cgroup the step processes, one for each running job. So what
// the controller holds is bounded piece by piece: jobs and their texts by the quotas
// of users (usage.go), requests and answers by the budgets of rpc/server, lists that
// are worked out by daemon.NewQueries.
const garbagePercent = 50

// socketMode says who may connect to the UNIX socket. Who that is, the kernel says, so it is open to
// everybody of this machine; but a controller that is not root can run its own user's
// jobs alone, and keeps others out.
func socketMode() fs.FileMode {
	if os.Geteuid() == 0 {
		return 0o666
	}
	return 0o600
}
