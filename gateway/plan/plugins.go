package plan

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"

	"schedrestd/conf"
	"schedrestd/gateway/endpoint"
	"schedrestd/internal/errs"
	"schedrestd/internal/feature"
	"schedrestd/ipc/work"
)

// validate checks the options that do not depend on the configuration.
func (o *options) validate() error {
	if err := endpoint.Check(o.Listen); err != nil {
		return err
	}
	if err := o.CheckMetrics(); err != nil {
		return err
	}
	if err := o.CheckAudit(); err != nil {
		return err
	}
	if _, err := o.RequestedAuth(); err != nil {
		return err
	}
	if _, err := o.RequestedVersions(); err != nil {
		return err
	}
	_, err := o.RequestedContent()
	return err
}

// configureAuth determines how clients can authenticate. If -a lists an
// unavailable method, configureAuth returns an error. Without -a, it omits
// unavailable methods and logs the reasons. But even without -a, it returns an
// error if SCHED_JWT is set and is not "daemon".
func (o *options) configureAuth(c *conf.Cluster, s *work.Setup, m mode, log *slog.Logger) error {
	requested, err := o.RequestedAuth()
	if err != nil {
		return err
	}
	for _, e := range feature.Auths {
		err := o.checkAuth(e.Auth, c)
		switch {
		case !requested.Has(e.Auth):
			level := slog.LevelInfo
			if e.Auth == feature.JWT && o.alsoOnTCP(m) {
				level = slog.LevelWarn
			}
			log.Log(context.Background(), level, e.Name+" is not loaded: it is not in the list", "by", o.Auth.Origin)
		case err == nil:
			s.JWT = s.JWT || e.Auth == feature.JWT
			s.Local = s.Local || e.Auth == feature.Local
		case o.Auth.Origin != "" || o.JWT != "" && o.JWT != jwtDaemon && e.Auth == feature.JWT:
			return errs.New(errs.Invalid, "%s can't be loaded: %v", e.Name, err).WithHint("%s", errs.HintOf(err))
		default:
			log.Log(context.Background(), o.omissionLevel(e.Auth, c, m), e.Name+" is not loaded: "+err.Error())
		}
	}
	if s.Local {
		s.AuthSocket = c.AuthSocket
		s.Munge = work.Munge{Socket: c.Munge.Socket, TTL: c.Munge.TTL}
		if c.Accounting != nil && s.Munge.Socket != "" {
			s.Munge.Accounting = c.Accounting.Munge
		}
		if c.AuthType == "auth/slurm" {
			s.Sack = o.sackSockets(c)
		}
	}
	return o.checkAuthMethods(c, s, m)
}

// omissionLevel returns the level of the log message about an omitted method.
// If SCHED_JWT is "daemon", as in the shipped unit, and rest_auth/jwt is
// omitted, the level is a warning. Clients will then send tokens, and the
// gateway will refuse every token. The same applies if it also listens on TCP,
// where clients have nothing but tokens.
func (o *options) omissionLevel(method feature.Auth, c *conf.Cluster, m mode) slog.Level {
	if method == feature.JWT && (o.alsoOnTCP(m) || o.JWT == jwtDaemon && !c.JWT) {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// alsoOnTCP reports whether the gateway listens on UNIX sockets and on TCP.
func (o *options) alsoOnTCP(m mode) bool {
	return m == listening && hasUnix(o.Listen) && slices.ContainsFunc(o.Listen, func(l string) bool { return !strings.HasPrefix(l, "unix:") })
}

// jwtDaemon is the value of SCHED_JWT in the environment of a daemon. In a
// user's environment, the variable contains the user's token.
const jwtDaemon = "daemon"

// checkAuth returns the reason why clients can't authenticate with the given
// method, or nil if they can.
func (o *options) checkAuth(method feature.Auth, c *conf.Cluster) error {
	switch {
	case method == feature.Local:
		return checkLocalAuth(c)
	case o.JWT != "" && o.JWT != jwtDaemon:
		// Any other value is probably a token that a user exported for client
		// commands.
		return errs.New(errs.Invalid, "SCHED_JWT is not %q", jwtDaemon).
			WithHint("a token in SCHED_JWT is for commands; for the gateway set SCHED_JWT=daemon")
	case !c.JWT:
		return errs.New(errs.Invalid, "the configuration has no AuthAltTypes=auth/jwt").WithHint("set AuthAltTypes=auth/jwt in %s", configFile(c))
	case o.JWT == "":
		for _, name := range []string{"SCHED_JWT", "SLURM_JWT"} {
			if _, isSet := os.LookupEnv(name); isSet { // slurmrestd starts with any value, also an empty one
				return errs.New(errs.Invalid, "%s is set to \"\"", name).WithHint("set %s=daemon", name)
			}
		}
		return errs.New(errs.Invalid, "SCHED_JWT=daemon is not set").WithHint("export SCHED_JWT=daemon")
	}
	return nil
}

// checkLocalAuth returns the reason why the daemons can't identify a client
// that connects to a UNIX socket of the gateway, or nil if they can. A
// controller on this machine learns the client's user from the kernel. Any
// daemon can also learn the user from a credential that munged or sackd issues.
func checkLocalAuth(c *conf.Cluster) error {
	switch {
	case c.AuthType == "auth/munge", c.AuthType == "auth/slurm":
		if _, err := schedUser(c); err != nil {
			return errs.New(errs.Invalid, "workers must not run as the cluster user, whose uid is unknown here: %v", err).
				WithHint("%s", missingUserHint(c))
		}
		return nil
	case c.AuthType != "auth/cred" && conf.NearestAuthType(c.AuthType) != "":
		return errs.New(errs.Invalid, "AuthType=%s is not supported", c.AuthType).
			WithHint("set AuthType=%s in %s", conf.NearestAuthType(c.AuthType), configFile(c))
	case c.AuthType != "auth/cred":
		return errs.New(errs.Invalid, "AuthType=%s is not supported", c.AuthType).
			WithHint("let users send tokens: AuthAltTypes=auth/jwt in %s and SCHED_JWT=daemon", configFile(c))
	case c.AuthSocket == "":
		return errs.New(errs.Invalid, "there is no configuration").WithHint("set AuthType=auth/cred in %s", configFile(c))
	case c.AuthSocket == conf.ControllerSocket && !hasController(c):
		return errs.New(errs.Invalid, "the controller of AuthType=auth/cred is on another machine, and this one has no socket %s", c.AuthSocket).
			WithHint("let users send tokens: AuthAltTypes=auth/jwt in %s and SCHED_JWT=daemon", configFile(c))
	}
	return nil
}

// hasController reports whether a controller of the configuration is on this machine,
// perhaps not started yet, or its socket is.
func hasController(c *conf.Cluster) bool {
	if _, err := os.Lstat(c.AuthSocket); err == nil {
		return true
	}
	own, _ := os.Hostname()
	short, _, _ := strings.Cut(own, ".")
	return slices.ContainsFunc(c.Controllers, func(h conf.Host) bool {
		ip, err := netip.ParseAddr(h.Address)
		return err == nil && ip.IsLoopback() || slices.Contains([]string{own, short, "localhost"}, h.Address) || h.Name == own || h.Name == short
	})
}

// configFile returns the name of the file in which the administrator should set
// a key. Its callers need the name for hints. If there is no configuration
// file, or if it is /dev/null, configFile returns the words "a sched.conf (-f
// FILE)" instead.
func configFile(c *conf.Cluster) string {
	if c.Path == "" || c.Path == os.DevNull {
		return "a sched.conf (-f FILE)"
	}
	return c.Path
}

// checkAuthMethods refuses authentication methods that exclude each other, and
// options that leave clients no way to authenticate.
func (o *options) checkAuthMethods(c *conf.Cluster, s *work.Setup, m mode) error {
	if o.Run.Switches.BecomeUser {
		if err := o.checkBecomeUser(m); err != nil {
			return err
		}
	}
	if !s.JWT && !s.Local {
		return errs.New(errs.Invalid, "no authentication method is available").
			WithHint("set AuthAltTypes=auth/jwt in %s and export SCHED_JWT=daemon", configFile(c))
	}
	// With become_user, the hint below would be wrong, and checkBecomeUser has
	// already checked the addresses.
	if m == listening && len(o.Listen) > 0 && !s.JWT && !hasUnix(o.Listen) && !o.Run.Switches.BecomeUser {
		reason, remedy := "it is not in the list of "+o.Auth.Origin, "add it to this list"
		if err := o.checkAuth(feature.JWT, c); err != nil {
			reason, remedy = err.Error(), errs.HintOf(err)
		}
		return errs.New(errs.Invalid, "no client could authenticate: TCP requires tokens, and rest_auth/jwt is not loaded: %s", reason).
			WithHint("%s, or listen on unix:/PATH", remedy)
	}
	return nil
}

// checkBecomeUser refuses become_user if it can't work, or if clients may use
// tokens. The kernel does not confirm the user that a token names. With tokens,
// a worker could run as one user and serve another.
func (o *options) checkBecomeUser(m mode) error {
	if !o.start.Root {
		return errs.New(errs.Denied, "become_user: only root can run workers as the connecting users").
			WithHint("start as root, or remove become_user from SCHEDRESTD_SECURITY")
	}
	if m == listening && (o.User != "" || o.Group != "") {
		return errs.New(errs.Invalid, "become_user runs workers as the connecting users, not as -u or -g").
			WithHint("leave out -u and -g, or remove become_user from SCHEDRESTD_SECURITY")
	}
	if requested, err := o.RequestedAuth(); err != nil || requested != feature.Local {
		return errs.New(errs.Invalid, "become_user needs -a rest_auth/local, because it can't be combined with rest_auth/jwt").
			WithHint("start with -a rest_auth/local, and listen only on UNIX sockets")
	}
	for _, l := range o.Listen {
		if !strings.HasPrefix(l, "unix:") {
			return errs.New(errs.Invalid, "become_user cannot listen on %s: the kernel does not report the user of a TCP connection", l).
				WithHint("listen on unix:/path/to/socket alone")
		}
	}
	return nil
}

func hasUnix(listen []string) bool {
	return slices.ContainsFunc(listen, func(l string) bool { return strings.HasPrefix(l, "unix:") })
}

// servedContent returns the content plugins to serve. If a plugin that -s lists
// is unavailable, this is an error. Without -s, unavailable plugins are
// omitted.
func (o *options) servedContent(c *conf.Cluster, log *slog.Logger) (work.Content, error) {
	requested, err := o.RequestedContent()
	if err != nil {
		return 0, err
	}
	var content work.Content
	if requested.Has(feature.Controller) {
		content |= work.ContentController
	}
	if requested.Has(feature.Util) {
		content |= work.ContentUtil
	}
	switch {
	case !requested.Has(feature.Accounting):
	case c.Accounting != nil:
		content |= work.ContentAccounting
	case o.Content.Origin != "":
		return 0, errs.New(errs.Invalid, "openapi/scheddb can't be loaded: %s", noAccounting).
			WithHint("set AccountingStorageType=accounting_storage/%s in %s, or leave openapi/scheddb out of the list", accountingDaemon(c), configFile(c))
	default:
		log.Info("openapi/scheddb is not loaded: " + noAccounting)
	}
	return content, nil
}

// accountingDaemon returns the name of the accounting daemon in the spelling of
// the configuration.
func accountingDaemon(c *conf.Cluster) string {
	if c.SlurmKeys {
		return "slurmdbd"
	}
	return "scheddbd"
}

const noAccounting = "the configuration names no accounting daemon"
