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

// Serve runs the daemon as configured by c until ctx ends, and then returns
// nil. Running jobs continue, and the next controller resumes them.
func Serve(ctx context.Context, c *conf.Cluster, version string, log *slog.Logger) error {
	user, err := daemon.SchedUser(c.User)
	if err != nil {
		return err
	}
	if err := daemon.CheckFiles(c.Files); err != nil {
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
	s := &server.Server{Handlers: controller.Handlers(), Limit: controller.Limit, Verify: keys.Verify,
		Super: daemon.Super(user.UID), Log: log, SpoolDir: controller.cfg.StateDir,
		MaxBytes: maxRequestBytes, MaxUserBytes: maxUserRequestBytes}
	debug.SetGCPercent(gcPercent)
	err = daemon.Serve(ctx, s, listeners, log, controller.Run)
	log.Info("controller stopped", "jobs", len(controller.activeIDs()))
	return err
}

// Limits in bytes on the requests that are in memory concurrently. The limit of
// one user admits the longest submission.
const (
	maxRequestBytes     = 64 << 20 // of all users
	maxUserRequestBytes = 16 << 20 // of one user
)

// gcPercent is the value of GOGC. It is half of Go's default, so garbage
// is collected about twice as often as by default. This is cheap, because most
// of the controller's memory holds jobs, which live long.
//
// The kernel does not limit the controller's memory. MemoryMax= in the unit
// would also count the processes of jobs, and a limit on the controller's own
// cgroup would also count the step processes, one for each running job. So each
// part of the memory has a limit of its own. The quotas of usage.go limit jobs,
// the budgets of rpc/server limit requests and answers, and daemon.NewQueries
// limits lists that are being encoded.
const gcPercent = 50

// socketMode returns the mode of the UNIX socket. It is open to all users,
// because the kernel identifies them. A controller that does not run as root
// can run only its own user's jobs, so it keeps other users out.
func socketMode() fs.FileMode {
	if os.Geteuid() == 0 {
		return 0o666
	}
	return 0o600
}
