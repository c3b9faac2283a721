// Package direct answers requests of the REST API inside this process. It
// sends the same RPCs to the daemons of a cluster as a worker of the gateway
// does, with the same handlers. So a command of schedctl is written once, for
// the REST API, and works with and without a gateway.
//
// Without a token, the daemons must be on this machine: on their UNIX sockets,
// the kernel tells each side which user the other side runs as.
package direct

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"schedrestd/api"
	"schedrestd/auth"
	"schedrestd/become/nss"
	"schedrestd/conf"
	"schedrestd/handlers"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/internal/feature"
	"schedrestd/internal/release"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/confserver"
	"schedrestd/rpc/confserver/request"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/tlsconn"
)

// A Cluster combines the clients of a cluster's daemons with the user's
// credential.
type Cluster struct {
	Client     *client.Client
	Credential model.Credential
	Auth       conf.Auth // configuration of tokens
	Path       string    // configuration of the cluster

	accounting handlers.Accounting // nil if the cluster has no accounting daemon
	name       string              // of the cluster
	serve      sync.Once           // starts the server of the REST API
	conns      chan net.Conn       // connections to that server
}

// Open reads the configuration of a cluster. It writes warnings about the
// configuration to warn. It does not connect to the daemons. The function token
// returns the user's token, or "" for none; its argument says which claims of
// the token the daemons use.
func Open(path string, token func(auth.Rules) (string, error), warn io.Writer) (*Cluster, error) {
	path, err := conf.Find(path)
	if err != nil {
		return nil, err
	}
	cluster, warnings, err := conf.Read(path)
	return open(cluster, warnings, err, token, warn)
}

// Fetch works like Open, but fetches the configuration from one of the given
// controllers (SLURM_CONF_SERVER). It authenticates with the token.
func Fetch(ctx context.Context, servers, text string, token func(auth.Rules) (string, error), warn io.Writer) (*Cluster, error) {
	list, err := confserver.Parse(servers)
	if err != nil {
		return nil, err
	}
	o := confserver.Options{Servers: list, Token: text, Log: slog.New(slog.DiscardHandler)}
	var secure *tlsconn.Client
	authorities, err := conf.Env("SCHEDRESTD_CONF_CA")
	if err == nil && authorities != "" {
		secure, err = secureFetch(authorities)
	}
	if err != nil {
		return nil, err
	}
	sent, err := request.Fetch(ctx, o, secure)
	if err != nil {
		return nil, err
	}
	sent.CA = authorities
	cluster, warnings, err := conf.ReadSent(sent)
	return open(cluster, warnings, err, token, warn)
}

func open(cluster *conf.Cluster, warnings []conf.Warning, err error, token func(auth.Rules) (string, error), warn io.Writer) (*Cluster, error) {
	for _, w := range warnings {
		fmt.Fprintf(warn, "warning: %s\n", w)
	}
	if err != nil {
		return nil, err
	}
	credential, err := token(Rules(&cluster.Auth))
	if err != nil {
		return nil, err
	}
	controllers, err := controllers(cluster, credential)
	if err != nil {
		return nil, err
	}
	sched, err := SchedUser(cluster)
	if err != nil {
		return nil, err
	}
	cfg := client.Config{
		Controllers:    controllers,
		Accounting:     accounting(cluster, credential),
		Cluster:        cluster.ClusterName,
		Timeout:        cluster.MessageTimeout,
		ConnectTimeout: cluster.ConnectTimeout,
		Trusted:        func(uid uint32) bool { return uid == 0 || uid == sched },
	}
	if cfg.TLS, err = secured(cluster); err != nil {
		return nil, err
	}
	c := &Cluster{Client: client.New(cfg), Credential: model.Credential{Token: credential}, Auth: cluster.Auth,
		Path: cluster.Path, name: cluster.ClusterName}
	if len(cfg.Accounting) > 0 {
		c.accounting = client.NewAccounting(cfg)
	}
	return c, nil
}

// secured returns the TLS for the connections to the daemons, or nil if the
// cluster uses none.
func secured(c *conf.Cluster) (*tlsconn.Client, error) {
	if !c.SecureRPC {
		return nil, nil
	}
	path, text, err := conf.ReadCA(c)
	if err != nil {
		return nil, err
	}
	return newTLS(path, text)
}

// secureFetch returns the TLS for fetching the configuration, with the CAs in
// the file at path.
func secureFetch(path string) (*tlsconn.Client, error) {
	text, err := conf.ReadAuthorities(path)
	if err != nil {
		return nil, err
	}
	return newTLS(path, text)
}

func newTLS(path string, text []byte) (*tlsconn.Client, error) {
	names, err := conf.Env("SCHEDRESTD_TLS_NAMES")
	if err != nil {
		return nil, err
	}
	check, err := conf.CheckNames(names)
	if err != nil {
		return nil, err
	}
	return tlsconn.ReadClient(path, text, check)
}

// Rules returns the claims of a token that the daemons with the configuration a
// use.
func Rules(a *conf.Auth) auth.Rules {
	return auth.Rules{UserField: a.UserClaimField, ClientIDs: a.ClientIDs, ClientIDsOnly: a.ClientIDsOnly}
}

// handler returns the handlers of the REST API.
func (c *Cluster) handler() http.Handler {
	names := newUsers()
	return handlers.New(handlers.Config{
		Controller: c.Client,
		Accounting: c.accounting,
		Content:    feature.AllContent,
		Resolver:   names,
		Config: rest.Config{
			Auth:      auth.Options{JWT: true, Local: true, UID: uint32(os.Geteuid()), Rules: Rules(&c.Auth)},
			Names:     api.NamesSched,
			Cluster:   c.name,
			Release:   release.Version,
			ErrorText: fault.Text,
			Users:     names,
			MaxBody:   maxBody,
			ReadBody:  time.Minute,
			Log:       slog.New(causes{}),
		},
	})
}

// maxBody is the maximum length of a request's body, in bytes. It is more than
// a script of the maximum length takes in JSON.
const maxBody = 64 << 20

// SchedUser returns the uid of SchedUser. Only this user and root may listen on
// the sockets of the daemons.
func SchedUser(c *conf.Cluster) (uint32, error) {
	if c.User == "" {
		return 0, nil
	}
	u, _, err := nss.ParseUser(c.User)
	return u.UID, errs.Wrap(err, errs.KindOf(err), "SchedUser=%s", c.User)
}

// controllers returns the addresses at which to try to reach a controller. The
// first one is, with AuthType=auth/cred, the UNIX socket of this machine's
// controller. If there is a token, the TCP addresses of all
// controllers follow.
func controllers(c *conf.Cluster, token string) ([]client.Address, error) {
	if len(c.Controllers) == 0 {
		return nil, errs.New(errs.Invalid, "%s names no controller", c.Path).WithHint("set SchedctldHost=NAME")
	}
	var list []client.Address
	if c.AuthType == "auth/cred" {
		list = []client.Address{{Name: c.Controllers[0].Name, Network: "unix", Address: c.AuthSocket}}
	}
	switch {
	case token != "":
		for _, h := range c.Controllers {
			list = append(list, tcp(h.Name, h.Address, c.ControllerPort))
		}
		return list, nil
	case c.AuthType != "auth/cred":
		return nil, errs.New(errs.Unauthenticated, "%s: schedctl does not support AuthType=%s; it needs a token", c.Path, c.AuthType).
			WithHint("set SCHED_JWT to a token; with Slurm, run: export $(scontrol token)")
	case c.AuthSocket == conf.ControllerSocket && isAbsent(c.AuthSocket):
		return nil, errs.New(errs.Unauthenticated,
			"no credential: TCP requires a token, and this machine has no socket %s of a controller", c.AuthSocket).
			WithHint("set SCHED_JWT to a token, or AuthInfo=socket=PATH in the configuration")
	}
	return list, nil
}

// isAbsent reports whether there is no file at path, usually because the
// controller runs on another machine.
func isAbsent(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// accounting returns the addresses of the accounting daemons, in the same order
// as controllers.
func accounting(c *conf.Cluster, token string) (list []client.Address) {
	a := c.Accounting
	if a == nil {
		return nil
	}
	if path := c.AccountingSocket(); path != "" {
		list = append(list, client.Address{Name: a.Host, Network: "unix", Address: path})
	}
	if token == "" {
		return list
	}
	list = append(list, tcp(a.Host, a.Host, a.Port))
	if a.BackupHost != "" {
		list = append(list, tcp(a.BackupHost, a.BackupHost, a.Port))
	}
	return list
}

func tcp(name, host string, port int) client.Address {
	return client.Address{Name: name, Host: host, Network: "tcp", Address: net.JoinHostPort(host, strconv.Itoa(port))}
}

// self describes this process, which is the client of its own handlers. The
// daemons check its uid and gid themselves.
func self() auth.Peer {
	return auth.Peer{Network: "unix", UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), PID: int32(os.Getpid()), Verified: true}
}
