package plan

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"

	"schedrestd/conf"
	"schedrestd/endpoint"
	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/plugin"
)

// sound refuses words that no configuration could give a meaning to, before one is read.
func (o *options) sound() error {
	if err := endpoint.Check(o.listen); err != nil {
		return err
	}
	if err := o.checkAudit(); err != nil {
		return err
	}
	if _, err := o.ways(); err != nil {
		return err
	}
	if _, err := o.versions(); err != nil {
		return err
	}
	_, err := o.pages()
	return err
}

// ways is the ways to authenticate that are wanted: -a, or all.
func (o *options) ways() (plugin.Auth, error) {
	if o.auth.from == "" {
		return plugin.Local | plugin.JWT, nil
	}
	return plugin.ParseAuth(o.auth.from, o.auth.value)
}

// versions is the API versions that are wanted: -d, or all.
func (o *options) versions() ([]plugin.Parser, error) {
	if o.parsers.from == "" {
		return plugin.AllParsers(), nil
	}
	return plugin.ParseParsers(o.parsers.from, o.parsers.value)
}

// pages is the content that is wanted: -s, or all.
func (o *options) pages() (plugin.Content, error) {
	if o.content.from == "" {
		return plugin.Controller | plugin.Accounting, nil
	}
	return plugin.ParseContent(o.content.from, o.content.value)
}

// authentication decides how clients may authenticate. A way that was asked for must be there;
// of the default the log says what is left out, and why.
func (o *options) authentication(c *conf.Cluster, s *ipc.Setup, m mode, log *slog.Logger) error {
	wanted, err := o.ways()
	if err != nil {
		return err
	}
	for _, e := range plugin.Auths {
		err := o.lacks(e.Auth, c)
		switch {
		case !wanted.Has(e.Auth):
			log.Info(e.Name+" is not loaded: it is not in the list", "by", o.auth.from)
		case err == nil:
			s.JWT = s.JWT || e.Auth == plugin.JWT
			s.Local = s.Local || e.Auth == plugin.Local
		case o.auth.from != "" || o.jwt != "" && o.jwt != daemon && e.Auth == plugin.JWT:
			return errs.New(errs.Invalid, "%s can't be loaded: %v", e.Name, err).WithHint("%s", errs.HintOf(err))
		default:
			log.Log(context.Background(), o.regret(e.Auth, c), e.Name+" is not loaded: "+err.Error())
		}
	}
	if s.Local {
		s.AuthSocket = c.AuthSocket
		s.Munge = ipc.Munge{Socket: c.Munge.Socket, TTL: c.Munge.TTL}
		if c.Accounting != nil && s.Munge.Socket != "" {
			s.Munge.Accounting = c.Accounting.Munge
		}
	}
	return o.lettingIn(c, s, m)
}

// regret is how loudly the log says that a way is left out. SCHED_JWT=daemon, which the shipped unit has, says that
// tokens are expected: each of them is going to be refused then.
func (o *options) regret(way plugin.Auth, c *conf.Cluster) slog.Level {
	if way == plugin.JWT && o.jwt == daemon && !c.JWT {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// daemon is the value of SCHED_JWT that says that this is no command of a user's.
const daemon = "daemon"

// lacks says why clients can't authenticate that way here; nil when they can.
func (o *options) lacks(way plugin.Auth, c *conf.Cluster) error {
	switch {
	case way == plugin.Local:
		return lacksLocal(c)
	case o.jwt != "" && o.jwt != daemon:
		// It would be somebody's own, exported for the commands.
		return errs.New(errs.Invalid, "SCHED_JWT is not %q", daemon).
			WithHint("a token in SCHED_JWT is for commands; for the gateway set SCHED_JWT=daemon")
	case !c.JWT:
		return errs.New(errs.Invalid, "the configuration has no AuthAltTypes=auth/jwt").WithHint("set it in %s", file(c))
	case o.jwt == "":
		return errs.New(errs.Invalid, "SCHED_JWT=daemon is not set").WithHint("export SCHED_JWT=daemon")
	}
	return nil
}

// lacksLocal says why nobody can vouch to the daemons for who connects to a UNIX socket: the
// kernel can to a controller of this machine, munged to any.
func lacksLocal(c *conf.Cluster) error {
	switch {
	case c.AuthType == "auth/munge":
		if _, err := schedUser(c); err != nil {
			return errs.New(errs.Invalid, "workers must not run as the cluster user, whose uid is unknown here: %v", err).WithHint("%s", makeUser(c))
		}
		return nil
	case c.AuthType == "auth/slurm":
		return errs.New(errs.Invalid, "AuthType=auth/slurm is not supported: its key lets the holder act as any user, so a gateway must not have it").
			WithHint("let users send tokens: AuthAltTypes=auth/jwt in %s and SCHED_JWT=daemon", file(c))
	case c.AuthType != "auth/cred":
		return errs.New(errs.Invalid, "AuthType=%s is not supported", c.AuthType).
			WithHint("let users send tokens: AuthAltTypes=auth/jwt in %s and SCHED_JWT=daemon", file(c))
	case c.AuthSocket == "":
		return errs.New(errs.Invalid, "it needs AuthType=auth/munge, or AuthType=auth/cred with AuthInfo=socket=PATH; the configuration has only AuthType=%s", c.AuthType).
			WithHint("set AuthInfo=socket=PATH in %s to the controller's socket", file(c))
	}
	return nil
}

// file is where a key of the configuration is to be set; /dev/null stands for none.
func file(c *conf.Cluster) string {
	if c.Path == "" || c.Path == os.DevNull {
		return "a sched.conf (-f FILE)"
	}
	return c.Path
}

// lettingIn refuses a start that could let nobody in, or in two ways that don't go together.
func (o *options) lettingIn(c *conf.Cluster, s *ipc.Setup, m mode) error {
	if o.switches.BecomeUser {
		if err := o.becoming(); err != nil {
			return err
		}
	}
	if !s.JWT && !s.Local {
		return errs.New(errs.Invalid, "no authentication method is available").
			WithHint("set AuthAltTypes=auth/jwt in %s and export SCHED_JWT=daemon", file(c))
	}
	// With become_user the hint would lead astray: there the listeners are judged where they are opened.
	if m == listening && len(o.listen) > 0 && !s.JWT && !hasUnix(o.listen) && !o.switches.BecomeUser {
		return errs.New(errs.Invalid, "no client could authenticate: TCP requires tokens, and rest_auth/jwt is not loaded").
			WithHint("export SCHED_JWT=daemon (and AuthAltTypes=auth/jwt in %s), or listen on unix:/PATH", file(c))
	}
	return nil
}

// becoming refuses become_user where it can't be had. A token names a user whom no kernel vouches
// for: a worker that becomes one and serves the other would be a way around both.
func (o *options) becoming() error {
	if !o.start.Root {
		return errs.New(errs.Denied, "become_user: only root can run workers as the connecting users").
			WithHint("start as root, or remove become_user from SCHEDRESTD_SECURITY")
	}
	if wanted, err := o.ways(); err != nil || wanted != plugin.Local {
		return errs.New(errs.Invalid, "become_user can't be combined with rest_auth/jwt").
			WithHint("start with -a rest_auth/local, and listen only on UNIX sockets")
	}
	return nil
}

func hasUnix(listen []string) bool {
	return slices.ContainsFunc(listen, func(l string) bool { return strings.HasPrefix(l, "unix:") })
}

// served decides which content is served. What was asked for must be there; by default
// what can't be is left out.
func (o *options) served(c *conf.Cluster, log *slog.Logger) (ipc.Content, error) {
	wanted, err := o.pages()
	if err != nil {
		return 0, err
	}
	var content ipc.Content
	if wanted.Has(plugin.Controller) {
		content |= ipc.ContentController
	}
	switch {
	case !wanted.Has(plugin.Accounting):
	case c.Accounting != nil:
		content |= ipc.ContentAccounting
	case o.content.from != "":
		return 0, errs.New(errs.Invalid, "openapi/scheddb can't be loaded: %s", noAccounting).
			WithHint("set AccountingStorageType=accounting_storage/scheddbd in %s, or list only openapi/schedctld", c.Path)
	default:
		log.Info("openapi/scheddb is not loaded: " + noAccounting)
	}
	return content, nil
}

const noAccounting = "the configuration names no accounting daemon"
