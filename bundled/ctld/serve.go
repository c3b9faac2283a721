package ctld

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"runtime/debug"

	"schedrestd/become/nss"
	"schedrestd/bundled/daemon"
	"schedrestd/conf"
	"schedrestd/internal/limit"
	"schedrestd/rpc/server"
)

// Serve runs the controller with the configuration c until ctx is done, and
// then returns nil. Running jobs continue, and the next controller adopts them.
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
	secure, err := daemon.ReadTLS(c.SecureRPC, c.Certificate, user)
	if err != nil {
		return err
	}
	if err := daemon.MakeDirectory(c.AuthSocket, conf.ControllerSocket, nss.User{}); err != nil {
		return err
	}
	listeners, err := daemon.Listen(cfg.Address, cfg.Port, daemon.Socket{Path: c.AuthSocket, Default: conf.ControllerSocket,
		Mode: socketMode(), DirOwner: user.UID, Required: !c.JWT || os.Geteuid() == 0}, log)
	if err != nil {
		return err
	}
	controller, err := Open(ctx, cfg)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return daemon.Close(listeners) // stopped during the start
	}
	if err != nil {
		return errors.Join(err, daemon.Close(listeners))
	}
	defer controller.Close()
	s := &server.Server{Handlers: controller.Handlers(), TLS: secure, Limit: controller.Limit, Verify: keys.Verify,
		Super: daemon.Super(user.UID), Owner: daemon.Owners(log), Log: log, SpoolDir: controller.cfg.StateDir,
		Bytes: limit.ControllerRequestBytes}
	debug.SetGCPercent(gcPercent)
	err = daemon.Serve(ctx, s, listeners, log, controller.Run)
	log.Info("controller stopped", "jobs", len(controller.activeIDs()))
	return err
}

// gcPercent is the value of GOGC. It is half of Go's default, so the garbage
// collector runs about twice as often. This costs little, because most of the
// controller's memory holds jobs, which are long-lived.
//
// The kernel can't limit the memory of the controller alone. MemoryMax= in the
// unit would also apply to the processes of jobs. A limit on the controller's
// own cgroup would also apply to the step processes, of which there is one for
// each running job. So each part of the controller's memory has its own limit.
// The quotas in usage.go limit jobs, the budgets of rpc/server limit requests
// and answers, and daemon.NewQueries limits the lists that are being encoded.
const gcPercent = 50

// socketMode returns the mode of the UNIX socket. Normally all users may
// connect, because the kernel identifies them. But a controller that does not
// run as root can run only jobs of its own user, so only that user may connect
// to it.
func socketMode() fs.FileMode {
	if os.Geteuid() == 0 {
		return 0o666
	}
	return 0o600
}
