// Package request asks controllers for the configuration of their cluster.
package request

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"

	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/confserver"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/munge"
	"schedrestd/rpc/sack"
	"schedrestd/rpc/tlsconn"
	"schedrestd/rpc/wire"
)

// Fetch fetches the configuration from the first controller that sends it. With
// secure, it uses TLS for TCP. The error's kind is Unavailable or Timeout if no
// controller could be reached.
func Fetch(ctx context.Context, o confserver.Options, secure *tlsconn.Client) (conf.Sent, error) {
	t, err := confserver.Prepare(o)
	if err != nil {
		return conf.Sent{}, err
	}
	return Send(ctx, &t, secure, o.Log, t.Dial)
}

// Dial opens a connection to one of a Task's endpoints.
type Dial func(ctx context.Context, endpoint int) (net.Conn, error)

// Send sends the request to one controller after the other, until one of them
// sends the configuration. With secure, it uses TLS for TCP.
func Send(ctx context.Context, t *confserver.Task, secure *tlsconn.Client, log *slog.Logger, dial Dial) (conf.Sent, error) {
	cfg := client.Config{MaxAnswer: confserver.MaxAnswer, MungeUID: munge.Anyone, TLS: secure, Log: log}
	for _, e := range t.Endpoints {
		if e.Kind == confserver.Controller {
			cfg.Controllers = append(cfg.Controllers, client.Address{Name: e.Name, Host: e.Host, Network: e.Network, Address: e.Address})
			cfg.Trusted = e.Trusts
		}
	}
	cfg.Dial = func(ctx context.Context, a client.Address) (net.Conn, error) {
		return dial(ctx, slices.IndexFunc(t.Endpoints, func(e confserver.Endpoint) bool { return e.Network == a.Network && e.Address == a.Address }))
	}
	var failure error
	for _, issuer := range issuers(t, dial) {
		cfg := cfg
		issuer(&cfg)
		files, from, err := client.New(cfg).ConfigFiles(ctx, model.Credential{Token: t.Token})
		if err == nil {
			sent, err := confserver.Accept(from, files)
			return sent, describe(t, err)
		}
		if failure == nil || errs.KindOf(failure) == errs.Unauthenticated {
			failure = err
		}
	}
	return conf.Sent{}, describe(t, failure)
}

// issuers returns functions that each configure a client with one kind of
// credential that this machine can issue, in the order in which to try them. The
// type of the cluster's authentication is not known yet. A credential can be
// decoded by every user, because SlurmUser is not known either. It permits
// nothing but this request, whose answer every user may read.
func issuers(t *confserver.Task, dial Dial) (list []func(*client.Config)) {
	if t.Token != "" {
		return []func(*client.Config){func(*client.Config) {}}
	}
	for i, e := range t.Endpoints {
		connect := func(ctx context.Context) (net.Conn, error) { return dial(ctx, i) }
		switch e.Kind {
		case confserver.Munged:
			list = append(list, func(c *client.Config) {
				c.Munge = &munge.Client{Socket: e.Address, Public: true, Trusted: e.Trusts,
					Dial: func(ctx context.Context, _ string) (net.Conn, error) { return connect(ctx) }}
			})
		case confserver.Sackd:
			list = append(list, func(c *client.Config) {
				c.Sack = &sack.Client{Sockets: []string{e.Address}, Public: true,
					Trusted: func(_ int, uid uint32) bool { return e.Trusts(uid) },
					Dial:    func(ctx context.Context, _ int) (net.Conn, error) { return connect(ctx) }}
			})
		}
	}
	if len(list) == 0 {
		list = append(list, func(*client.Config) {}) // the kernel identifies this process
	}
	return list
}

// describe adds the controllers to an error, and a hint about it.
func describe(t *confserver.Task, err error) error {
	hint := errs.HintOf(err)
	e, ok := errors.AsType[*errs.Error](err)
	switch {
	case errors.Is(err, wire.ErrTLS), ok && e.Number == fault.TLSRequired:
		hint = "name the file of the cluster's CA in SCHEDRESTD_CONF_CA"
	case hint != "" && hint != fault.TLSHint:
	case ok && e.Number == fault.ConfiglessDisabled:
		hint = "set SlurmctldParameters=enable_configless in the slurm.conf of the controller, and reconfigure it"
	case hint == fault.TLSHint:
		hint = confserver.CheckHint
	}
	return t.Describe(err, hint)
}
