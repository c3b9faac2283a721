package plan

import (
	"cmp"
	"log/slog"
	"time"

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
	r := o.Run
	r.Connections, r.Threads, r.LogLevel = o.maxConnections(c), o.maxThreads(c), int8(level)
	plan := &query.WholePlan{Listen: listen, Metrics: metrics, Setup: setup, Plan: ipc.Plan{
		Mode:       m.plan(),
		Run:        r,
		Service:    service,
		SocketMode: uint16(cmp.Or(socketMode, o.DefaultSocketMode(setup.JWT))),
		SocketGID:  gid,
		Secrets: ipc.Secrets{
			TLS:    ipc.TLS{Certificate: tls.Certificate, Key: tls.Key, ClientCA: tls.ClientCA, TLS12: tls.TLS12},
			Tokens: ipc.Tokens{Key: c.JWTKey, JWKS: c.JWKS, Register: setup.Register, Signing: o.signingKey},
		},
	}}
	plan.HasSocketGroup, plan.Service.MinUID = hasGroup, setup.MinUID
	if setup.TokenOutput {
		plan.Secrets.Tokens.Provider = work.ProviderRules{Tokens: setup.Tokens, UserClaim: setup.UserClaim}.Text()
	}
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
	if m != listening {
		s.Register, o.Run.Switches.Output, s.TokenOutput, o.TokenMode = "", false, false, "" // see announce
	}
	s.Output = o.Run.Switches.Output
	s.Cluster, s.Hosts, s.Limits = c.ClusterName, o.fixedHosts(), o.limits(c)
	s.MinUID = cmp.Or(s.MinUID, 1000)
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
	if err := o.checkOutput(c, &s); err != nil {
		return s, err
	}
	if err := o.configureGatewayTokens(c, &s); err != nil {
		return s, err
	}
	if s.Register != "" {
		log.Info("gateway tokens are accepted, " + describeTokenMode(&s))
	}
	if s.Content, err = o.servedContent(c, log); err != nil {
		return s, err
	}
	if s.Zone, err = zone.Environment(); err != nil {
		return s, err
	}
	addDaemons(c, &s, log)
	return s, nil
}

// checkOutput refuses to read output for users whom neither the kernel nor the keeper
// names.
func (o *options) checkOutput(c *conf.Cluster, s *work.Setup) error {
	switch {
	case s.TokenOutput && (!o.start.Root || o.Run.Switches.BecomeUser):
		return errs.New(errs.Invalid, "SCHEDRESTD_OUTPUT=tokens needs a gateway that root starts with -u: it starts a process of each user whose files are read").
			WithHint("with become_user, and for the files of an ordinary user who starts it, use SCHEDRESTD_OUTPUT=sockets")
	case s.TokenOutput && (!s.JWT || c.JWTKey == "" && c.JWKS == ""):
		return errs.New(errs.Invalid, "SCHEDRESTD_OUTPUT=tokens needs rest_auth/jwt and jwt_key= or jwks=: the keeper must verify whose token it is").
			WithHint("set jwt_key= or jwks= in AuthAltParameters=, or remove SCHEDRESTD_OUTPUT")
	case !s.TokenOutput && o.Run.Switches.Output && o.start.Root && !o.Run.Switches.BecomeUser:
		return errs.New(errs.Invalid, "SCHEDRESTD_OUTPUT=sockets needs become_user: the kernel must name the user whose files are read").
			WithHint("SCHEDRESTD_SECURITY=become_user, with -a rest_auth/local and local sockets only; or SCHEDRESTD_OUTPUT=tokens")
	}
	return nil
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
