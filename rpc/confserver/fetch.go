package confserver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
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
	addresses, err := o.addresses()
	if err != nil {
		return conf.Sent{}, o.describe(err)
	}
	issuers, err := o.issuers()
	if err != nil {
		return conf.Sent{}, o.describe(err)
	}
	var failure error
	for _, issuer := range issuers {
		cfg := client.Config{Controllers: addresses, MaxAnswer: maxAnswer, Trusted: trusts, MungeUID: munge.Anyone, TLS: o.TLS, Log: o.Log}
		issuer(&cfg)
		files, from, err := client.New(cfg).ConfigFiles(ctx, model.Credential{Token: o.Token})
		if err == nil {
			sent, err := accept(from, files)
			return sent, o.describe(err)
		}
		if failure == nil || errs.KindOf(failure) == errs.Unauthenticated {
			failure = err
		}
	}
	return conf.Sent{}, o.describe(failure)
}

// accept returns the files of an answer.
func accept(from string, files []model.ConfigFile) (conf.Sent, error) {
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
func (o *Options) describe(err error) error {
	if err == nil {
		return nil
	}
	hint := errs.HintOf(err)
	e, ok := errors.AsType[*errs.Error](err)
	switch {
	case errors.Is(err, wire.ErrTLS):
		hint = "name the file of the cluster's CA in SCHEDRESTD_CONF_CA"
	case hint != "":
	case ok && e.Number == fault.ConfiglessDisabled:
		hint = "set SlurmctldParameters=enable_configless in the slurm.conf of the controller, and reconfigure it"
	case errs.KindOf(err) == errs.Unauthenticated:
		hint = "the controller must accept credentials of this machine's munged or sackd, or the token of SCHEDRESTD_CONF_TOKEN"
	case errs.KindOf(err) == errs.Unavailable, errs.KindOf(err) == errs.Timeout:
		hint = "check that a controller listens there; if it uses TLS, name the file of its CA in SCHEDRESTD_CONF_CA"
	}
	return &errs.Error{Kind: errs.KindOf(err), Message: "fetch the configuration from " + o.Servers.String(), Hint: hint, Err: err}
}

// addresses resolves the names of the controllers. It omits names that can't be
// resolved, unless no address is left.
func (o *Options) addresses() (list []client.Address, err error) {
	var failures []error
	for _, s := range o.Servers {
		name := s.String()
		if s.path != "" {
			list = append(list, client.Address{Name: name, Network: "unix", Address: s.path})
			continue
		}
		ips, err := nss.Host(s.host)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		for _, ip := range ips {
			list = append(list, client.Address{Name: name, Host: s.host, Network: "tcp", Address: net.JoinHostPort(ip.String(), strconv.Itoa(s.port))})
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

// issuers returns functions that each configure a client with one kind of
// credential that this machine can issue, in the order in which to try them. The
// type of the cluster's authentication is not known yet. A credential can be
// decoded by every user, because SlurmUser is not known either. It permits
// nothing but this request, whose answer every user may read.
func (o *Options) issuers() (list []func(*client.Config), err error) {
	if o.Token != "" {
		return []func(*client.Config){func(*client.Config) {}}, nil
	}
	if isSocket(o.Munge) {
		list = append(list, func(c *client.Config) { c.Munge = &munge.Client{Socket: o.Munge, Public: true} })
	}
	for _, socket := range o.Sack {
		if isSocket(socket) {
			list = append(list, func(c *client.Config) { c.Sack = newSack(socket) })
		}
	}
	for _, s := range o.Servers {
		if s.path != "" && len(list) == 0 {
			list = append(list, func(*client.Config) {}) // the kernel identifies this process
		}
	}
	if len(list) == 0 {
		return nil, errs.New(errs.Unavailable, "no credential for the request: neither munged nor sackd runs on this machine").
			WithHint("start munged or sackd, or name a file with a token in SCHEDRESTD_CONF_TOKEN")
	}
	return list, nil
}

func isSocket(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Type() == os.ModeSocket
}

// newSack returns a client for one sack.socket, which root, the owner of its
// directory or SlurmUser may serve.
func newSack(socket string) *sack.Client {
	return &sack.Client{Sockets: []string{socket}, Public: true,
		Trusted: func(_ int, uid uint32) bool { return trusts(uid) || ownsDirectory(socket, uid) },
		Dial:    func(ctx context.Context, _ int) (net.Conn, error) { return unixconn.Dial(ctx, socket) },
	}
}

func ownsDirectory(socket string, uid uint32) bool {
	info, err := os.Stat(filepath.Dir(socket))
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Uid == uid && uid != become.Overflow
}

// trusts reports whether uid may serve a controller's port on this machine.
func trusts(uid uint32) bool {
	if uid == 0 || int(uid) == os.Geteuid() {
		return true
	}
	u, err := nss.LookupUser(slurmUser)
	return err == nil && u.UID == uid
}
