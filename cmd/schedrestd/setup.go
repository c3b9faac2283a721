package main

import (
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"schedrestd/become"
	"schedrestd/conf"
	"schedrestd/errs"
	"schedrestd/guard"
	"schedrestd/ipc"
	"schedrestd/plugin"
	"schedrestd/privsep"
)

// configuration reads the cluster's configuration and logs what is odd in it.
func configuration(o options, log *slog.Logger) (*conf.Cluster, error) {
	path, err := conf.Find(o.conf)
	if err != nil {
		return nil, err
	}
	cluster, warnings, err := conf.Read(path)
	for _, w := range warnings {
		log.Warn(w.String())
	}
	if err != nil {
		return nil, err
	}
	return cluster, judge(cluster)
}

// judge refuses, as root, a configuration that others than root and SchedUser can change: it
// says what root does, and where users' tokens are sent. A key that lies open is refused by anybody.
func judge(c *conf.Cluster) error {
	trust := guard.Trust{Private: become.PrivateGroup, Owners: []uint32{}}
	if c.User != "" {
		u, _, err := become.ParseUser(c.User)
		if err != nil {
			return errs.Wrap(err, errs.KindOf(err), "SchedUser=%s", c.User)
		}
		trust.Owners = append(trust.Owners, u.UID)
	}
	if os.Geteuid() == 0 {
		if err := conf.Judge(c.Files, trust); err != nil {
			return err
		}
	}
	return judgeKey(c, trust.Owners)
}

// judgeKey looks at the key that signs tokens, which this process does not need: none here, or
// none that can be read, is as it should be. One that others can read is not, whoever
// finds it out.
func judgeKey(c *conf.Cluster, owners []uint32) error {
	if c.JWTKey == "" {
		return nil
	}
	f, _, err := guard.Open(c.JWTKey, guard.Rule{What: "key file", Secret: true, Owners: append(owners, 0)})
	switch errs.KindOf(err) {
	case errs.NotFound, errs.Denied:
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// parent is all that the parent needs to serve this cluster.
func (o *options) parent(c *conf.Cluster, log *slog.Logger) (privsep.Config, error) {
	mode, err := o.mode()
	if err != nil {
		return privsep.Config{}, err
	}
	setup, err := o.setup(c, log)
	return privsep.Config{
		Listen:      o.listen,
		User:        o.user,
		Group:       o.group,
		SchedUser:   c.User,
		Switches:    o.switches,
		Setup:       setup,
		Log:         log,
		Connections: o.connections,
		Threads:     o.threads,
		SocketMode:  mode,
		SocketGroup: o.socketGroup,
	}, err
}

// setup is what a worker gets to see of the configuration. No secret is in it, nor
// where one is kept.
func (o *options) setup(c *conf.Cluster, log *slog.Logger) (ipc.Setup, error) {
	names, err := o.spelling(c)
	if err != nil {
		return ipc.Setup{}, err
	}
	s := ipc.Setup{
		Cluster:         c.ClusterName,
		RequireUserName: o.switches.RequireUserName,
		UserClaim:       c.UserClaimField,
		Names:           names,
		Content:         ipc.ContentController | ipc.ContentAccounting,
		LogLevel:        int8(o.level()),
		Limits:          limits(c),
	}
	for _, p := range plugin.AllParsers() {
		s.Parsers = append(s.Parsers, ipc.Parser{Version: p.Version, Flags: uint8(p.Flags)})
	}
	if err := o.plugins(c, &s, log); err != nil {
		return s, err
	}
	for _, h := range c.Controllers {
		if s.Controllers, err = addresses(s.Controllers, "SchedctldHost", h.Name, h.Address, c.ControllerPort); err != nil {
			return s, err
		}
	}
	if c.Accounting == nil {
		log.Info("openapi/scheddb is not loaded: the configuration names no accounting daemon")
		return s, nil
	}
	for _, host := range []string{c.Accounting.Host, c.Accounting.BackupHost} {
		if host == "" {
			continue
		}
		if s.Accounting, err = addresses(s.Accounting, "AccountingStorageHost", host, host, c.Accounting.Port); err != nil {
			return s, err
		}
	}
	if c.Accounting.Socket != "" { // the only way for who has no token
		s.Accounting = append(s.Accounting, ipc.Address{Name: c.Accounting.Host, Network: "unix", Address: c.Accounting.Socket})
	}
	return s, nil
}

// limits is what one client may cost. It is the one place where that is decided.
func limits(c *conf.Cluster) ipc.Limits {
	return ipc.Limits{
		ReadHeader: 10 * time.Second,
		ReadBody:   20 * time.Second,
		Idle:       60 * time.Second,
		Stall:      60 * time.Second,
		Call:       c.MessageTimeout,
		Drain:      60 * time.Second,
		Header:     32 << 10,
		Body:       50 << 20, // a job script may be 4 MB, an array of parts of a job several of them
	}
}

// plugins decides how clients may authenticate, and says why when a way is left out.
func (o *options) plugins(c *conf.Cluster, s *ipc.Setup, log *slog.Logger) error {
	s.JWT = c.JWT && o.daemon
	switch {
	case !c.JWT:
		log.Info("rest_auth/jwt is not loaded: the configuration has no AuthAltTypes=auth/jwt")
	case !o.daemon:
		log.Info("rest_auth/jwt is not loaded: SCHED_JWT=daemon is not set")
	}
	if c.AuthType == "auth/cred" && c.AuthSocket != "" {
		s.Local, s.AuthSocket = true, c.AuthSocket
	} else {
		log.Info("rest_auth/local is not loaded: it needs AuthType=auth/cred and AuthInfo=socket=PATH", "AuthType", c.AuthType)
	}
	if !s.JWT && !s.Local {
		return errs.New(errs.Invalid, "no way to authenticate is left").
			WithHint("set AuthAltTypes=auth/jwt in %s and export SCHED_JWT=daemon", c.Path)
	}
	local := slices.ContainsFunc(o.listen, func(l string) bool { return strings.HasPrefix(l, "unix:") })
	if !s.JWT && !local {
		return errs.New(errs.Invalid, "nobody could be let in: over TCP a token is needed, and rest_auth/jwt is not loaded").
			WithHint("export SCHED_JWT=daemon (and AuthAltTypes=auth/jwt in %s), or listen on unix:/PATH", c.Path)
	}
	return nil
}

// addresses appends the ways to one daemon. Names are resolved here, once, by a process
// without privileges: what a worker is told are addresses.
func addresses(list []ipc.Address, key, name, host string, port int) ([]ipc.Address, error) {
	found, err := become.Host(host)
	if err != nil {
		return nil, errs.Wrap(err, errs.KindOf(err), "%s=%s", key, host)
	}
	for _, a := range found {
		list = append(list, ipc.Address{Name: name, Network: "tcp", Address: join(a, port)})
	}
	return list, nil
}

func join(a netip.Addr, port int) string {
	return net.JoinHostPort(a.String(), strconv.Itoa(port))
}
