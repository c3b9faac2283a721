package main

import (
	"fmt"
	"io"
	"net"
	"strconv"

	"schedrestd/become/nss"
	"schedrestd/conf"
	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
)

// A connection combines a client of the controller with the user's credential.
type connection struct {
	client     *client.Client
	credential model.Credential
	auth       conf.Auth // configuration of tokens
}

// connect reads the configuration and returns a connection to the cluster's
// controller. It writes warnings about the configuration to warn.
func connect(path string, warn io.Writer) (*connection, error) {
	path, err := conf.Find(path)
	if err != nil {
		return nil, err
	}
	cluster, warnings, err := conf.Read(path)
	for _, w := range warnings {
		fmt.Fprintf(warn, "warning: %s\n", w)
	}
	if err != nil {
		return nil, err
	}
	token, err := tokenFromEnv(cluster.UserClaimField)
	if err != nil {
		return nil, err
	}
	addrs, err := addresses(cluster, token)
	if err != nil {
		return nil, err
	}
	sched, err := schedUser(cluster)
	if err != nil {
		return nil, err
	}
	return &connection{
		client: client.New(client.Config{Controllers: addrs, Cluster: cluster.ClusterName, Timeout: cluster.MessageTimeout,
			Trusted: func(uid uint32) bool { return uid == 0 || uid == sched }}),
		credential: model.Credential{Token: token}, auth: cluster.Auth,
	}, nil
}

// schedUser returns the uid of SchedUser. Only this user and root may listen on
// the controller's socket.
func schedUser(c *conf.Cluster) (uint32, error) {
	if c.User == "" {
		return 0, nil
	}
	u, _, err := nss.ParseUser(c.User)
	return u.UID, errs.Wrap(err, errs.KindOf(err), "SchedUser=%s", c.User)
}

// addresses returns the addresses at which schedctl tries to reach a
// controller. The first one is the UNIX socket of this machine's controller, if
// the configuration names it. On this socket, the kernel tells each side which
// user the other side runs as. If there is a token, addresses then lists the
// TCP addresses of all controllers.
func addresses(c *conf.Cluster, token string) ([]client.Address, error) {
	if len(c.Controllers) == 0 {
		return nil, errs.New(errs.Invalid, "%s names no controller", c.Path).WithHint("set SchedctldHost=NAME")
	}
	var list []client.Address
	if c.AuthType == "auth/cred" && c.AuthSocket != "" {
		list = []client.Address{{Name: c.Controllers[0].Name, Network: "unix", Address: c.AuthSocket}}
	}
	switch {
	case token != "":
		return append(list, tcp(c)...), nil
	case c.AuthType != "auth/cred":
		return nil, errs.New(errs.Unsupported, "%s: schedctl does not support AuthType=%s; it needs a token", c.Path, c.AuthType).
			WithHint("set SCHED_JWT to a token; on the controller's machine, run: export $(schedctl token)")
	case c.AuthSocket == "":
		return nil, errs.New(errs.Unauthenticated,
			"no credential: TCP requires a token, and %s names no socket of the controller", c.Path).
			WithHint("set SCHED_JWT to a token, or AuthInfo=socket=PATH in the configuration")
	}
	return list, nil
}

func tcp(c *conf.Cluster) []client.Address {
	var list []client.Address
	for _, h := range c.Controllers {
		address := net.JoinHostPort(h.Address, strconv.Itoa(c.ControllerPort))
		list = append(list, client.Address{Name: h.Name, Network: "tcp", Address: address})
	}
	return list
}
