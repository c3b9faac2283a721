package dbd

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"schedrestd/become/nss"
	"schedrestd/bundled/daemon"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// Serve runs the daemon with the configuration c until ctx is done, and then
// returns nil.
func Serve(ctx context.Context, c *conf.Dbd, log *slog.Logger) error {
	user, err := daemon.SchedUser(c.User)
	if err != nil {
		return err
	}
	// Files that belong to SchedUser are trusted, because this process will run
	// as that user.
	if err := daemon.CheckFiles(c.Files, user.UID); err != nil {
		return err
	}
	byRoot := os.Geteuid() == 0
	if err := daemon.MakeDirectory(c.AuthSocket, conf.AccountingSocket, user); err != nil {
		return err
	}
	if err := dropPrivileges(user, log); err != nil {
		return err
	}
	if err := daemon.Harden(); err != nil {
		return err
	}
	keys, err := daemon.ReadKeys(ctx, c.Path, &c.Auth, user, log)
	if err != nil {
		return err
	}
	secure, err := daemon.ReadTLS(c.SecureRPC, c.Certificate, user)
	if err != nil {
		return err
	}
	// All users of this machine may connect to the socket, because the kernel
	// reports the uid of each client.
	listeners, err := daemon.Listen(c.Address, c.Port, daemon.Socket{Path: c.AuthSocket, Default: conf.AccountingSocket,
		Mode: 0o666, DirOwner: user.UID, Required: !c.JWT || byRoot}, log)
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
	privacy.Log(log, conf.PrivateJobs|conf.PrivateUsers|conf.PrivateAccounts)
	d := New(store, privacy, log)
	s := &server.Server{Persistent: d.Handlers(), TLS: secure, Greeting: message.PagesOffered, Limit: d.Limit, Verify: keys.WithTickets(), Super: super, Owner: daemon.Owners(log), Log: log,
		SpoolDir: filepath.Dir(c.StorageLoc)}
	return daemon.Serve(ctx, s, listeners, log, nil)
}

// dropPrivileges makes the process run as the scheduler's user if root started
// it. This makes it safe for the process to parse input from the network.
// dropPrivileges must be called before the process opens files of its own.
func dropPrivileges(user nss.User, log *slog.Logger) error {
	switch euid := uint32(os.Geteuid()); {
	case euid == 0 && user.UID != 0 && user.Name == "":
		// If no user has this uid, the group is unknown, and the process would
		// keep group 0.
		return errs.New(errs.Invalid, "SchedUser=%d: no such user, and so no group to run as", user.UID).
			WithHint("name an existing user, or start scheddbd under that uid")
	case euid == 0 && user.UID != 0:
		uid, gid := int(user.UID), int(user.GID)
		// These functions of package syscall change all threads. Those of x/sys
		// change only the calling thread.
		err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(gid, gid, gid), syscall.Setresuid(uid, uid, uid))
		if err != nil {
			return errs.Wrap(err, errs.Denied, "become %s", user)
		}
	case euid != user.UID:
		log.Warn("running under a user other than SchedUser", "uid", euid, "SchedUser", user.String())
	}
	return nil
}
