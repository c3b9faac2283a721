package plan

import (
	"cmp"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"schedrestd/become/nss"
	"schedrestd/conf"
	"schedrestd/gateway/endpoint"
	"schedrestd/internal/errs"
	"schedrestd/internal/feature"
	"schedrestd/internal/zone"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// checkTrust refuses a configuration that an untrusted user can change. It
// checks this only if root starts the gateway. The configuration determines
// what root does, and where users' tokens are sent. So only root, SchedUser
// and, for a slurm.conf, SlurmUser's group are trusted.
func (o *options) checkTrust(c *conf.Cluster) error {
	var owners, groups []uint32
	u, err := schedUser(c)
	if err != nil && !userAbsent(c, err) {
		return err
	}
	if err == nil && c.User != "" {
		owners = append(owners, u.UID)
		if c.SlurmKeys && u.GID != 0 {
			groups = []uint32{u.GID} // docs/design/TRUST.md: anyone who may write slurm.conf has root's rights in the cluster
		}
	}
	if !o.start.Root {
		return nil
	}
	return o.host.CheckTrust(owners, groups)
}

// schedUser looks up SchedUser. It returns root if the configuration does not
// set SchedUser.
func schedUser(c *conf.Cluster) (nss.User, error) {
	if c.User == "" {
		return nss.User{}, nil
	}
	u, _, err := nss.ParseUser(c.User)
	return u, errs.Wrap(err, errs.KindOf(err), "%s=%s", keySpelling(c, "SchedUser"), c.User)
}

// userAbsent reports whether err means that a site's SlurmUser does not exist
// on this machine. This is normal on a machine without a Slurm daemon: no
// process on it runs as SlurmUser, and no file belongs to SlurmUser.
func userAbsent(c *conf.Cluster, err error) bool {
	return c.SlurmKeys && errs.KindOf(err) == errs.NotFound
}

// missingUserHint returns the hint for a configuration that can't be used
// because SlurmUser does not exist on this machine.
func missingUserHint(c *conf.Cluster) string {
	return "create the user " + c.User + " here with the uid that it has on the controller's machine, " +
		"or set that uid in " + c.Path
}

// existingUser returns the name of SchedUser. If a site's SlurmUser does not
// exist on this machine, existingUser returns "", which means root.
func existingUser(c *conf.Cluster) string {
	if _, err := schedUser(c); userAbsent(c, err) {
		return ""
	}
	return c.User
}

// plan returns all data that the parent needs to serve this cluster.
func (o *options) plan(c *conf.Cluster, level slog.Level, m mode, log *slog.Logger) (*query.WholePlan, error) {
	socketMode, err := o.ParseSocketMode()
	if err != nil {
		return nil, err
	}
	setup, err := o.setup(c, m, log)
	setup.LogLevel = int8(level)
	if err != nil {
		return nil, err
	}
	tls, err := c.RestdTLS()
	if err != nil {
		return nil, err
	}
	service, err := o.resolveService(existingUser(c))
	if err != nil {
		return nil, err
	}
	gid, hasGroup, err := o.socketGID()
	if err != nil {
		return nil, err
	}
	listen, err := o.parseListen(o.Listen)
	if err != nil {
		return nil, err
	}
	needsAddress := m == listening && !o.CheckConfinement && !(o.Check && len(listen) == 0)
	if o.Run.Netns != "" && needsAddress && !hasNetwork(listen, ipc.TCP) {
		return nil, errs.New(errs.Invalid, "SCHEDRESTD_NETNS=%s needs a TCP address to listen on", o.Run.Netns).
			WithHint("add a TCP address; for sockets of the service manager use NetworkNamespacePath= in their unit; " +
				"UNIX sockets belong to no network namespace")
	}
	var metrics []ipc.Listen
	if o.Metrics != "" && m == listening {
		if metrics, err = o.parseListen([]string{o.Metrics}); err != nil {
			return nil, err
		}
		metrics[0].Metrics, setup.Metrics = true, true
	}
	if err := checkDistinct(listen, metrics, o.Run.Netns != ""); err != nil {
		return nil, err
	}
	run := o.Run
	run.Connections, run.Threads, run.LogLevel = o.maxConnections(c), o.maxThreads(c), int8(level)
	plan := &query.WholePlan{Listen: listen, Metrics: metrics, Setup: setup, Plan: ipc.Plan{
		Mode:       m.plan(),
		Run:        run,
		Service:    service,
		SocketMode: uint16(cmp.Or(socketMode, o.DefaultSocketMode(setup.JWT))),
		SocketGID:  gid,
		Secrets: ipc.Secrets{
			TLS:    ipc.TLS{Certificate: tls.Certificate, Key: tls.Key, ClientCA: tls.ClientCA, TLS12: tls.TLS12},
			Tokens: ipc.Tokens{Key: c.JWTKey, JWKS: c.JWKS},
		},
	}}
	plan.HasSocketGroup = hasGroup
	switch {
	case o.Check:
		plan.Mode = ipc.ModeRead
	case o.CheckConfinement:
		plan.Mode = ipc.ModeCheck
	}
	return plan, Complete(&plan.Plan, &plan.Setup.Setup, &plan.Listen)
}

// setup returns the part of the configuration that workers get. It contains no
// secret and no path to a secret.
func (o *options) setup(c *conf.Cluster, m mode, log *slog.Logger) (work.Setup, error) {
	s := o.Setup
	s.Cluster, s.Hosts, s.Limits = c.ClusterName, o.fixedHosts(), o.limits(c)
	s.UserClaim, s.ClientIDs, s.ClientIDsOnly = c.UserClaimField, c.ClientIDs, c.ClientIDsOnly
	s.JSON, s.YAML = o.jsonLayout(c), o.yamlLayout(c)
	if len(s.Statuses) == 0 {
		s.Statuses = feature.DefaultStatuses
	}
	versions, err := o.RequestedVersions()
	if err != nil {
		return s, err
	}
	for _, p := range versions {
		s.Parsers = append(s.Parsers, work.Parser{Version: p.Version, Flags: uint8(p.Flags)})
	}
	if s.Names, err = o.Spelling(c); err != nil {
		return s, err
	}
	if _, err := schedUser(c); err != nil && o.Setup.RequireUserName {
		return s, errs.New(errs.KindOf(err), "require_user_name needs every name of the cluster user: %v", err).
			WithHint("%s", missingUserHint(c))
	}
	if err := o.configureAuth(c, &s, m, log); err != nil {
		return s, err
	}
	if s.Content, err = o.servedContent(c, log); err != nil {
		return s, err
	}
	if s.Zone, err = zone.Environment(); err != nil {
		return s, err
	}
	return s, addDaemons(c, &s, log)
}

// addDaemons adds the addresses of the site's controllers and accounting
// daemons to s. In each list, the addresses are in the order in which workers
// should try them.
func addDaemons(c *conf.Cluster, s *work.Setup, log *slog.Logger) (err error) {
	s.Controllers, err = resolveDaemons(keySpelling(c, "SchedctldHost"), displayedControllers(c), c.ControllerPort, log)
	if err == nil && c.SharedAddress != "" {
		var sharedErr error
		shared := []conf.Host{{Name: c.SharedAddress, Address: c.SharedAddress}}
		if s.Front, sharedErr = resolveDaemons(keySpelling(c, "SchedctldAddr"), shared, c.ControllerPort, log); sharedErr != nil {
			log.Warn("shared address of the controllers not usable; using their own addresses until the next reload",
				"error", sharedErr)
		}
	}
	s.MorePorts = uint16(c.MorePorts)
	if err != nil || s.Content&work.ContentAccounting == 0 {
		return err
	}
	accounting := []conf.Host{{Name: c.Accounting.Host, Address: c.Accounting.Host}}
	if backup := c.Accounting.BackupHost; backup != "" {
		accounting = append(accounting, conf.Host{Name: backup, Address: backup})
	}
	if s.Accounting, err = resolveDaemons("AccountingStorageHost", accounting, c.Accounting.Port, log); err != nil {
		return err
	}
	if c.Accounting.Socket != "" { // a request without a token can use only this address
		s.Accounting = append(s.Accounting, work.Address{Name: c.Accounting.Host, Network: "unix", Address: c.Accounting.Socket})
	}
	return nil
}

// keySpelling returns a key in the spelling that the configuration file uses.
func keySpelling(c *conf.Cluster, key string) string {
	if c.SlurmKeys {
		return strings.Replace(key, "Sched", "Slurm", 1)
	}
	return key
}

// displayedControllers returns the controllers with the names that users see.
// With Slurm's keys, a controller named "localhost" gets the machine's own
// name, as in Slurm.
func displayedControllers(c *conf.Cluster) []conf.Host {
	list := slices.Clone(c.Controllers)
	hostname, err := os.Hostname()
	for i := range list {
		if c.SlurmKeys && err == nil && strings.EqualFold(list[i].Name, "localhost") {
			list[i].Name, _, _ = strings.Cut(hostname, ".")
		}
	}
	return list
}

// limits returns the limits for each client.
func (o *options) limits(c *conf.Cluster) work.Limits {
	l := o.Setup.Limits
	l.ReadHeader, l.ReadBody = 10*time.Second, 20*time.Second
	l.Idle, l.Stall, l.Drain = 60*time.Second, 60*time.Second, 60*time.Second
	l.Call = c.MessageTimeout
	l.Accounting = cmp.Or(l.Accounting, 900*time.Second) // as Slurm's own clients
	l.Connect = cmp.Or(c.ConnectTimeout, 2*time.Second)  // Slurm's own default
	l.Header = 32 << 10
	l.Body = cmp.Or(l.Body, 50<<20)        // a heterogeneous job may have several scripts of up to 4 MB
	l.Answers = cmp.Or(l.Answers, 256<<20) // twenty lists of 20 000 jobs
	return l
}

// resolveDaemons returns the addresses of daemons. This process, which has no
// privileges, resolves each name once, so that workers get only addresses. It
// omits a host that can't be resolved, such as a backup that is being replaced.
// The gateway then uses the other hosts. If no host is left, resolveDaemons
// returns an error.
func resolveDaemons(key string, hosts []conf.Host, port int, log *slog.Logger) (list []work.Address, err error) {
	var failures []error
	for _, h := range hosts {
		addrs, err := nss.Host(h.Address)
		if err != nil {
			failures = append(failures, errs.Wrap(err, errs.KindOf(err), "%s=%s", key, h.Address))
		}
		host := h.Address
		if host == h.Name {
			host = ""
		}
		for _, a := range addrs {
			list = append(list, work.Address{Name: h.Name, Host: host, Network: "tcp", Address: hostPort(a, port)})
		}
	}
	if len(list) == 0 && len(failures) > 0 {
		return nil, failures[0]
	}
	for _, err := range failures {
		log.Warn("daemon left out until the next reload", "error", err)
	}
	return list, nil
}

func hostPort(a netip.Addr, port int) string {
	return net.JoinHostPort(a.String(), strconv.Itoa(port))
}

// parseListen returns the addresses to listen on. Names are resolved only at
// the start, because a reload does not open listeners again.
func (o *options) parseListen(texts []string) (list []ipc.Listen, err error) {
	for _, text := range texts {
		e, err := endpoint.Parse(text)
		if err != nil {
			return nil, err
		}
		l := ipc.Listen{Text: text, Network: e.Network, TLS: e.TLS, Path: e.Path}
		if e.Network == ipc.TCP && !o.CheckConfinement && !o.start.Reload {
			if l.Addresses, err = e.Addresses(); err != nil {
				return nil, err
			}
		}
		list = append(list, l)
	}
	return list, nil
}
