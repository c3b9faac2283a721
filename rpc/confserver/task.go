package confserver

import (
	"context"
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
)

// Options configures Prepare.
type Options struct {
	Servers Servers
	Token   string   // for auth/jwt; "" to use MUNGE or auth/slurm
	Munge   string   // socket of munged
	Sack    []string // sockets of sackd, in the order in which to try them
	Log     *slog.Logger
}

// Limits on an answer. The files of a cluster with 20 000 nodes take about a
// megabyte.
const (
	MaxAnswer = 16 << 20 // bytes
	maxFiles  = 1024
)

// slurmUser is the usual name of SlurmUser. Before the configuration is known,
// a controller on this machine is trusted only if it runs as root, as this
// process's user or as the user of this name.
const slurmUser = "slurm"

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
	Name    string // of the controller, for people
	Host    string // of a controller at a TCP address: its name or address, which its certificate may contain
	Network string // "tcp" or "unix"
	Address string // host:port, or a path
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
		return t, t.Describe(err, errs.HintOf(err))
	}
	issuers := o.issuers()
	if o.Token == "" && len(issuers) == 0 && !slices.ContainsFunc(controllers, isUnix) {
		return t, t.Describe(errs.New(errs.Unavailable, "no credential for the request: neither munged nor sackd runs on this machine"),
			"start munged or sackd, or name a file with a token in SCHEDRESTD_CONF_TOKEN")
	}
	t.Endpoints = append(controllers, issuers...)
	return t, nil
}

func isUnix(e Endpoint) bool { return e.Network == "unix" }

// Dial opens a connection to one of the endpoints.
func (t *Task) Dial(ctx context.Context, endpoint int) (net.Conn, error) {
	e := t.Endpoints[endpoint]
	return unixconn.DialContext(ctx, e.Network, e.Address)
}

// Trusts reports whether uid may serve the endpoint on this machine.
func (e Endpoint) Trusts(uid uint32) bool { return slices.Contains(e.Trusted, uid) }

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

// Describe adds the controllers to an error, and a hint about it. The given hint
// precedes the general ones; it may be "".
func (t *Task) Describe(err error, hint string) error {
	if err == nil {
		return nil
	}
	switch kind := errs.KindOf(err); {
	case hint != "":
	case kind == errs.Unauthenticated:
		hint = "the controller must accept credentials of this machine's munged or sackd, or the token of SCHEDRESTD_CONF_TOKEN"
	case kind == errs.Unavailable, kind == errs.Timeout:
		hint = CheckHint
	}
	return &errs.Error{Kind: errs.KindOf(err), Message: "fetch the configuration from " + t.Servers, Hint: hint, Err: err}
}

// CheckHint is the hint if no controller answers.
const CheckHint = "check that a controller listens there; if it uses TLS, name the file of its CA in SCHEDRESTD_CONF_CA"

// controllers resolves the names of the controllers. It omits names that can't
// be resolved, unless no address is left.
func (o *Options) controllers() (list []Endpoint, err error) {
	trusted := trustedUsers()
	add := func(name, host, network, address string) {
		list = append(list, Endpoint{name, host, network, address, Controller, trusted})
	}
	var failures []error
	for _, s := range o.Servers {
		name := s.String()
		if s.path != "" {
			add(name, "", "unix", s.path)
			continue
		}
		ips, err := nss.Host(s.host)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		for _, ip := range ips {
			add(name, s.host, "tcp", net.JoinHostPort(ip.String(), strconv.Itoa(s.port)))
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
		list = append(list, Endpoint{Network: "unix", Address: socket, Kind: kind, Trusted: trusted})
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
