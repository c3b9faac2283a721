package dbd

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"schedrestd/become/nss"
	"schedrestd/conf"
	"schedrestd/daemon"
	"schedrestd/errs"
	"schedrestd/rpc/server"
)

// Serve is the daemon: it serves as c says until ctx ends, which is no error.
func Serve(ctx context.Context, c *conf.Dbd, log *slog.Logger) error {
	user, err := daemon.SchedUser(c.User)
	if err != nil {
		return err
	}
	// SchedUser's own file is good enough: this process is about to become him.
	if err := daemon.Judge(c.Files, user.UID); err != nil {
		return err
	}
	if err := settle(user, log); err != nil {
		return err
	}
	if err := daemon.Harden(); err != nil {
		return err
	}
	keys, err := daemon.ReadKeys(ctx, c.Path, &c.Auth, user, log)
	if err != nil {
		return err
	}
	// The socket is open to everybody of this machine: who he is, the kernel says.
	listeners, err := daemon.Listen(c.Address, c.Port, c.AuthSocket, 0o666, user.UID)
	if err != nil {
		return err
	}
	store, err := OpenStore(ctx, c.StorageLoc, log)
	if err != nil {
		return errors.Join(err, daemon.Close(listeners))
	}
	defer store.Close()
	super := daemon.Super(user.UID)
	privacy := daemon.Privacy{Hidden: c.PrivateData, Super: super}
	privacy.Log(log, conf.PrivateJobs|conf.PrivateUsers)
	d := New(store, privacy)
	s := &server.Server{Persistent: d.Handlers(), Limit: d.Limit, Verify: keys.WithTickets(), Super: super, Log: log,
		SpoolDir: filepath.Dir(c.StorageLoc)}
	return daemon.Serve(ctx, s, listeners, log, nil)
}

// settle takes the process to its final rights. Started by root it becomes the scheduler's
// user before it opens anything, because it will parse what comes over the network.
func settle(user nss.User, log *slog.Logger) error {
	switch euid := uint32(os.Geteuid()); {
	case euid == 0 && user.UID != 0 && user.Name == "":
		// A number without an entry has no group: it would keep group 0.
		return errs.New(errs.Invalid, "SchedUser=%d has no entry among the users, and so no group", user.UID).
			WithHint("name a user that exists, or start scheddbd as that uid")
	case euid == 0 && user.UID != 0:
		uid, gid := int(user.UID), int(user.GID)
		// Package syscall's, which act on all threads; x/sys's on the calling one.
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(gid, gid, gid), syscall.Setresuid(uid, uid, uid)); err != nil {
			return errs.Wrap(err, errs.Denied, "become %s", user)
		}
	case euid != user.UID:
		log.Warn("not run by the scheduler's user", "uid", euid, "SchedUser", user.String())
	}
	return nil
}
