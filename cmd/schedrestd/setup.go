package main

import (
	"cmp"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"schedrestd/become"
	"schedrestd/conf"
	"schedrestd/errs"
	"schedrestd/guard"
	"schedrestd/ipc"
	"schedrestd/plugin"
	"schedrestd/privsep"
)

// judge refuses, as root, a configuration that others than root and SchedUser can change: it
// says what root does, and where users' tokens are sent.
func judge(c *conf.Cluster) error {
	trust := guard.Trust{Private: become.PrivateGroup, Owners: []uint32{}}
	if c.User != "" {
		u, _, err := become.ParseUser(c.User)
		if err != nil {
			return errs.Wrap(err, errs.KindOf(err), "SchedUser=%s", c.User)
		}
		trust.Owners = append(trust.Owners, u.UID)
	}
	if os.Geteuid() != 0 {
		return nil
	}
	return conf.Judge(c.Files, trust)
}

// parent is all that the parent needs to serve this cluster.
func (o *options) parent(c *conf.Cluster, level slog.Level, m mode, log *slog.Logger) (privsep.Config, error) {
	mode, err := o.mode()
	if err != nil {
		return privsep.Config{}, err
	}
	setup, err := o.setup(c, m, log)
	setup.LogLevel = int8(level)
	if err != nil {
		return privsep.Config{}, err
	}
	tls, err := c.Restd()
	return privsep.Config{
		Listen:      o.listen,
		User:        o.user,
		Group:       o.group,
		SchedUser:   c.User,
		Switches:    o.switches,
		Setup:       setup,
		Log:         log,
		Connections: o.connections,
		PerSource:   o.perSource,
		Identities:  o.identities,
		Threads:     o.threads,
		SocketMode:  mode,
		SocketGroup: o.socketGroup,
		Secrets: privsep.Secrets{
			TLS:    privsep.TLS{Certificate: tls.Certificate, Key: tls.Key, ClientCA: tls.ClientCA, TLS12: tls.TLS12},
			Tokens: privsep.Tokens{Key: c.JWTKey, JWKS: c.JWKS},
		},
	}, err
}

// setup is what a worker gets to see of the configuration. No secret is in it, nor
// where one is kept.
func (o *options) setup(c *conf.Cluster, m mode, log *slog.Logger) (ipc.Setup, error) {
	s := ipc.Setup{
		Cluster:         c.ClusterName,
		RequireUserName: o.switches.RequireUserName,
		UserClaim:       c.UserClaimField,
		Statuses:        o.statuses,
		JSON:            o.json,
		YAML:            o.yaml,
		Limits:          o.limits(c),
	}
	if len(s.Statuses) == 0 {
		s.Statuses = plugin.DefaultStatuses
	}
	versions, err := o.versions()
	if err != nil {
		return s, err
	}
	for _, p := range versions {
		s.Parsers = append(s.Parsers, ipc.Parser{Version: p.Version, Flags: uint8(p.Flags)})
	}
	if s.Names, err = o.spelling(c); err != nil {
		return s, err
	}
	if err := o.authentication(c, &s, m, log); err != nil {
		return s, err
	}
	if s.Content, err = o.served(c, log); err != nil {
		return s, err
	}
	return s, daemons(c, &s)
}

// daemons adds where the site's daemons are, by address.
func daemons(c *conf.Cluster, s *ipc.Setup) (err error) {
	for _, h := range c.Controllers {
		if s.Controllers, err = addresses(s.Controllers, "SchedctldHost", h.Name, h.Address, c.ControllerPort); err != nil {
			return err
		}
	}
	if s.Content&ipc.ContentAccounting == 0 {
		return nil
	}
	for _, host := range []string{c.Accounting.Host, c.Accounting.BackupHost} {
		if host == "" {
			continue
		}
		if s.Accounting, err = addresses(s.Accounting, "AccountingStorageHost", host, host, c.Accounting.Port); err != nil {
			return err
		}
	}
	if c.Accounting.Socket != "" { // the only way for who has no token
		s.Accounting = append(s.Accounting, ipc.Address{Name: c.Accounting.Host, Network: "unix", Address: c.Accounting.Socket})
	}
	return nil
}

// limits is what one client may cost. It is the one place where that is decided.
func (o *options) limits(c *conf.Cluster) ipc.Limits {
	return ipc.Limits{
		ReadHeader: 10 * time.Second,
		ReadBody:   20 * time.Second,
		Idle:       60 * time.Second,
		Stall:      60 * time.Second,
		Call:       c.MessageTimeout,
		Drain:      60 * time.Second,
		Header:     32 << 10,
		Body:       cmp.Or(uint32(o.body), 50<<20), // a job script may be 4 MB, an array of parts of a job several of them
	}
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
