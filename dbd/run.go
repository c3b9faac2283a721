package dbd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/auth"
	"schedrestd/become"
	"schedrestd/conf"
	"schedrestd/errs"
	"schedrestd/rpc/server"
	"schedrestd/socket"
)

// shutdownTimeout is how long requests that are being answered may hold up the end.
const shutdownTimeout = 10 * time.Second

// Run is the daemon: it serves as c says until ctx ends, which is no error.
func Run(ctx context.Context, c *conf.Dbd, log *slog.Logger) error {
	user, err := schedUser(c.User)
	if err != nil {
		return err
	}
	if err := settle(user, log); err != nil {
		return err
	}
	super := func(uid uint32) bool { return uid == 0 || uid == user.UID || uid == uint32(os.Geteuid()) }
	verify, err := verifier(c, user, log)
	if err != nil {
		return err
	}
	store, err := OpenStore(ctx, c.StorageLoc)
	if err != nil {
		return err
	}
	defer store.Close()
	listeners, err := listen(c)
	if err != nil {
		return err
	}
	s := &server.Server{Persistent: New(store, super).Handlers(), Verify: verify, Log: log}
	return serve(ctx, s, listeners, log)
}

// schedUser finds the user that SchedUser names; none is root.
func schedUser(name string) (become.User, error) {
	if name == "" {
		return become.User{Name: "root"}, nil
	}
	u, _, err := become.ParseUser(name)
	return u, errs.Wrap(err, errs.KindOf(err), "SchedUser=%s", name)
}

// settle takes the process to its final rights. Started by root it becomes the scheduler's
// user before it opens anything, because it will parse what comes over the network.
// It can't be traced or dumped: it holds the cluster's key.
func settle(user become.User, log *slog.Logger) error {
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
	unix.Umask(0o077)
	return errs.Wrap(unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0), errs.Internal, "switch off core dumps")
}

// verifier is how tokens are judged; nil when the configuration has no auth/jwt.
func verifier(c *conf.Dbd, user become.User, log *slog.Logger) (func(token, actAs string) (server.Identity, error), error) {
	switch {
	case c.AuthType != "auth/cred":
		return nil, errs.New(errs.Unsupported, "%s: AuthType=%s is for Slurm's own daemons", c.Path, c.AuthType).WithHint("AuthType=auth/cred")
	case !c.JWT && c.AuthSocket == "":
		return nil, errs.New(errs.Invalid, "%s: nobody could say who he is", c.Path).
			WithHint("AuthInfo=socket=PATH for users of this machine, AuthAltTypes=auth/jwt for tokens")
	case !c.JWT:
		return nil, nil
	case c.JWTKey == "":
		return nil, errs.New(errs.Invalid, "%s: AuthAltTypes=auth/jwt without a key", c.Path).WithHint("AuthAltParameters=jwt_key=PATH")
	}
	key, err := auth.LoadKey(c.JWTKey, user.UID, uint32(os.Geteuid()))
	if err != nil {
		return nil, err
	}
	for _, w := range key.Warnings() {
		log.Warn(w)
	}
	tokens := auth.Verifier{Key: key, UserClaimField: c.UserClaimField}
	authority := &server.Authority{
		Token: func(token string) (string, time.Time, error) {
			claims, err := tokens.Verify(token)
			return claims.User, claims.Expires, err
		},
		Lookup: func(name string) (uint32, uint32, error) {
			u, err := become.LookupUser(name)
			return u.UID, u.GID, err
		},
		Super: func(uid uint32) bool { return uid == 0 || uid == user.UID },
	}
	return authority.Verify, nil
}

// listen opens the TCP port, and the UNIX socket when there is one. The socket is open to
// everybody of this machine: who he is, the kernel says.
func listen(c *conf.Dbd) ([]net.Listener, error) {
	address := net.JoinHostPort(c.Address, strconv.Itoa(c.Port))
	tcp, err := net.Listen("tcp", address)
	if err != nil {
		return nil, errs.Wrap(err, errs.Conflict, "listen on %s", address)
	}
	if c.AuthSocket == "" {
		return []net.Listener{tcp}, nil
	}
	unix, err := socket.Listen(c.AuthSocket, socket.Options{Mode: 0o666, Private: become.PrivateGroup})
	if err != nil {
		tcp.Close()
		return nil, err
	}
	return []net.Listener{tcp, unix}, nil
}

// serve serves until ctx ends, or a listener fails.
func serve(ctx context.Context, s *server.Server, listeners []net.Listener, log *slog.Logger) error {
	failed := make(chan error, len(listeners))
	for _, ln := range listeners {
		log.Info("listening", "network", ln.Addr().Network(), "address", ln.Addr().String())
		go func() { failed <- s.Serve(ln) }()
	}
	var err error
	select {
	case <-ctx.Done():
		log.Info("shutting down")
	case err = <-failed:
		err = fmt.Errorf("serve: %w", err)
	}
	end, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	return errors.Join(err, s.Shutdown(end))
}
