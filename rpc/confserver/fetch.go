package confserver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"schedrestd/become"
	"schedrestd/become/nss"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/internal/fdpass/unixconn"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/munge"
	"schedrestd/rpc/sack"
	"schedrestd/rpc/tlsconn"
	"schedrestd/rpc/wire"
)

// Options configures Fetch.
type Options struct {
	Servers Servers
	Token   string          // for auth/jwt; "" to use MUNGE or auth/slurm
	Munge   string          // socket of munged
	Sack    []string        // sockets of sackd, in the order in which to try them
	TLS     *tlsconn.Client // for TCP; nil for none
	Log     *slog.Logger
}

// Limits on an answer. The files of a cluster with 20 000 nodes take about a
// megabyte.
const (
	maxAnswer = 16 << 20 // bytes
	maxFiles  = 1024
)

// slurmUser is the usual name of SlurmUser. Before the configuration is known,
// a controller on this machine is trusted only if it runs as root, as this
// process's user or as the user of this name.
const slurmUser = "slurm"

// Fetch fetches the configuration from the first controller that sends it. The
// error's kind is Unavailable or Timeout if no controller could be reached.
func Fetch(ctx context.Context, o Options) (conf.Sent, error) {
	t, err := Prepare(o)
	if err != nil {
		return conf.Sent{}, err
	}
	return t.Fetch(ctx, o.TLS, o.Log, t.Dial)
}

// A Task is what a process needs to know for a request for the configuration. A
// process that has a Task, and that gets its connections from another process,
// needs no access to files and none to the network.
type Task struct {
	Servers   string // the controllers, for errors
	Token     string // "" for none
	Endpoints []Endpoint
}

// An Endpoint is an address to which the request needs connections.
type Endpoint struct {
	client.Address
	Kind    Kind
	Trusted []uint32 // users who may serve it, if it is on this machine
}

// Kind says what is at an address.
type Kind uint8

// The kinds of endpoints.
const (
	Controller Kind = iota
	Munged
	Sackd
)

// Prepare looks up everything that the request needs.
func Prepare(o Options) (Task, error) {
	t := Task{Servers: o.Servers.String(), Token: o.Token}
	controllers, err := o.controllers()
	if err != nil {
		return t, t.describe(err)
	}
	issuers := o.issuers()
	if o.Token == "" && len(issuers) == 0 && !slices.ContainsFunc(controllers, isUnix) {
		return t, t.describe(errs.New(errs.Unavailable, "no credential for the request: neither munged nor sackd runs on this machine").
			WithHint("start munged or sackd, or name a file with a token in SCHEDRESTD_CONF_TOKEN"))
	}
	t.Endpoints = append(controllers, issuers...)
	return t, nil
}

func isUnix(e Endpoint) bool { return e.Network == "unix" }

// Dial opens a connection to one of the endpoints.
func (t *Task) Dial(ctx context.Context, endpoint int) (net.Conn, error) {
	e := t.Endpoints[endpoint]
	return unixconn.DialContext(ctx, e.Network, e.Address.Address)
}

// Fetch sends the request to one controller after the other, until one of them
// sends the configuration. It gets its connections from dial, whose last
// argument is an index of t.Endpoints.
func (t *Task) Fetch(ctx context.Context, secure *tlsconn.Client, log *slog.Logger, dial func(context.Context, int) (net.Conn, error)) (conf.Sent, error) {
	cfg := client.Config{MaxAnswer: maxAnswer, MungeUID: munge.Anyone, TLS: secure, Log: log}
	for _, e := range t.Endpoints {
		if e.Kind == Controller {
			cfg.Controllers = append(cfg.Controllers, e.Address)
			cfg.Trusted = e.trusts
		}
	}
	cfg.Dial = func(ctx context.Context, a client.Address) (net.Conn, error) {
		return dial(ctx, slices.IndexFunc(t.Endpoints, func(e Endpoint) bool { return e.Network == a.Network && e.Address.Address == a.Address }))
	}
	var failure error
	for _, issuer := range t.issuers(dial) {
		cfg := cfg
		issuer(&cfg)
		files, from, err := client.New(cfg).ConfigFiles(ctx, model.Credential{Token: t.Token})
		if err == nil {
			sent, err := Accept(from, files)
			return sent, t.describe(err)
		}
		if failure == nil || errs.KindOf(failure) == errs.Unauthenticated {
			failure = err
		}
	}
	return conf.Sent{}, t.describe(failure)
}

// issuers returns functions that each configure a client with one kind of
// credential that this machine can issue, in the order in which to try them. The
// type of the cluster's authentication is not known yet. A credential can be
// decoded by every user, because SlurmUser is not known either. It permits
// nothing but this request, whose answer every user may read.
func (t *Task) issuers(dial func(context.Context, int) (net.Conn, error)) (list []func(*client.Config)) {
	if t.Token != "" {
		return []func(*client.Config){func(*client.Config) {}}
	}
	for i, e := range t.Endpoints {
		connect := func(ctx context.Context) (net.Conn, error) { return dial(ctx, i) }
		switch e.Kind {
		case Munged:
			list = append(list, func(c *client.Config) {
				c.Munge = &munge.Client{Socket: e.Address.Address, Public: true, Trusted: e.trusts,
					Dial: func(ctx context.Context, _ string) (net.Conn, error) { return connect(ctx) }}
			})
		case Sackd:
			list = append(list, func(c *client.Config) {
				c.Sack = &sack.Client{Sockets: []string{e.Address.Address}, Public: true,
					Trusted: func(_ int, uid uint32) bool { return e.trusts(uid) },
					Dial:    func(ctx context.Context, _ int) (net.Conn, error) { return connect(ctx) }}
			})
		}
	}
	if len(list) == 0 {
		list = append(list, func(*client.Config) {}) // the kernel identifies this process
	}
	return list
}

// trusts reports whether uid may serve the endpoint on this machine.
func (e Endpoint) trusts(uid uint32) bool { return slices.Contains(e.Trusted, uid) }

// Accept returns the files of an answer, or an error if no controller sends such
// files.
func Accept(from string, files []model.ConfigFile) (conf.Sent, error) {
	if len(files) > maxFiles {
		return conf.Sent{}, errs.New(errs.BadAnswer, "the controller sent %d files; at most %d are permitted", len(files), maxFiles)
	}
	sent := conf.Sent{Origin: from, Files: map[string]string{}}
	for _, f := range files {
		if f.Exists {
			sent.Files[f.Name] = f.Text
		}
	}
	if sent.Files[conf.MainFile] == "" {
		return conf.Sent{}, errs.New(errs.BadAnswer, "the controller sent no %s", conf.MainFile)
	}
	return sent, nil
}

// describe adds the controllers to an error, and a hint about it.
func (t *Task) describe(err error) error {
	if err == nil {
		return nil
	}
	hint := errs.HintOf(err)
	e, ok := errors.AsType[*errs.Error](err)
	switch {
	case errors.Is(err, wire.ErrTLS), ok && e.Number == fault.TLSRequired:
		hint = "name the file of the cluster's CA in SCHEDRESTD_CONF_CA"
	case hint != "" && hint != fault.TLSHint:
	case ok && e.Number == fault.ConfiglessDisabled:
		hint = "set SlurmctldParameters=enable_configless in the slurm.conf of the controller, and reconfigure it"
	case errs.KindOf(err) == errs.Unauthenticated && hint == "":
		hint = "the controller must accept credentials of this machine's munged or sackd, or the token of SCHEDRESTD_CONF_TOKEN"
	case errs.KindOf(err) == errs.Unavailable, errs.KindOf(err) == errs.Timeout, hint == fault.TLSHint:
		hint = "check that a controller listens there; if it uses TLS, name the file of its CA in SCHEDRESTD_CONF_CA"
	}
	return &errs.Error{Kind: errs.KindOf(err), Message: "fetch the configuration from " + t.Servers, Hint: hint, Err: err}
}

// controllers resolves the names of the controllers. It omits names that can't
// be resolved, unless no address is left.
func (o *Options) controllers() (list []Endpoint, err error) {
	trusted := trustedUsers()
	add := func(a client.Address) { list = append(list, Endpoint{a, Controller, trusted}) }
	var failures []error
	for _, s := range o.Servers {
		name := s.String()
		if s.path != "" {
			add(client.Address{Name: name, Network: "unix", Address: s.path})
			continue
		}
		ips, err := nss.Host(s.host)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		for _, ip := range ips {
			add(client.Address{Name: name, Host: s.host, Network: "tcp", Address: net.JoinHostPort(ip.String(), strconv.Itoa(s.port))})
		}
	}
	if len(list) == 0 {
		// While the network is starting, DNS does not answer.
		return nil, errs.Wrap(failures[0], errs.Unavailable, "no name of a controller can be resolved")
	}
	for _, err := range failures {
		o.Log.Warn("controller left out", "error", err)
	}
	return list, nil
}

// issuers returns the sockets of this machine that issue credentials. Root, the
// owner of the socket's directory and, for sackd, anyone who may serve a
// controller's port may serve such a socket.
func (o *Options) issuers() (list []Endpoint) {
	add := func(socket string, kind Kind, trusted ...uint32) {
		if info, err := os.Stat(socket); err != nil || info.Mode().Type() != os.ModeSocket {
			return
		}
		if owner, ok := directoryOwner(socket); ok {
			trusted = append(trusted, owner)
		}
		list = append(list, Endpoint{client.Address{Network: "unix", Address: socket}, kind, trusted})
	}
	if o.Token != "" {
		return nil
	}
	add(o.Munge, Munged, 0)
	for _, socket := range o.Sack {
		add(socket, Sackd, trustedUsers()...)
	}
	return list
}

// trustedUsers returns the users who may serve a controller's port on this
// machine.
func trustedUsers() []uint32 {
	list := []uint32{0, uint32(os.Geteuid())}
	if u, err := nss.LookupUser(slurmUser); err == nil {
		list = append(list, u.UID)
	}
	return list
}

func directoryOwner(path string) (uid uint32, ok bool) {
	info, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return 0, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Uid == become.Overflow {
		return 0, false
	}
	return st.Uid, true
}
