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

// connection is a way to ask the controller, and who asks.
type connection struct {
	client     *client.Client
	credential model.Credential
	auth       conf.Auth // what the configuration says of tokens
}

// connect reads the configuration and decides who asks. Warnings about the
// configuration go to warn.
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
	token, err := tokenOf(cluster.UserClaimField)
	if err != nil {
		return nil, err
	}
	to, err := addresses(cluster, token)
	if err != nil {
		return nil, err
	}
	sched, err := schedUser(cluster)
	if err != nil {
		return nil, err
	}
	return &connection{
		client: client.New(client.Config{Controllers: to, Cluster: cluster.ClusterName, Timeout: cluster.MessageTimeout,
			Trusted: func(uid uint32) bool { return uid == 0 || uid == sched }}),
		credential: model.Credential{Token: token}, auth: cluster.Auth,
	}, nil
}

// schedUser is the uid of SchedUser, who may serve the controller's socket.
func schedUser(c *conf.Cluster) (uint32, error) {
	if c.User == "" {
		return 0, nil
	}
	u, _, err := nss.ParseUser(c.User)
	return u.UID, errs.Wrap(err, errs.KindOf(err), "SchedUser=%s", c.User)
}

// addresses returns the ways to the controllers: the UNIX socket of the one on this
// machine, where the kernel tells each side who the other one is, and with a token every
// controller over TCP.
func addresses(c *conf.Cluster, token string) ([]client.Address, error) {
	if len(c.Controllers) == 0 {
		return nil, errs.New(errs.Invalid, "%s names no controller", c.Path).WithHint("give SchedctldHost=NAME in it")
	}
	var list []client.Address
	if c.AuthType == "auth/cred" && c.AuthSocket != "" {
		list = []client.Address{{Name: c.Controllers[0].Name, Network: "unix", Address: c.AuthSocket}}
	}
	switch {
	case token != "":
		return append(list, tcp(c)...), nil
	case c.AuthType != "auth/cred":
		return nil, errs.New(errs.Unsupported, "%s has AuthType=%s, which schedctl does not speak: without a token it can't say who asks", c.Path, c.AuthType).
			WithHint("set SCHED_JWT to a token: export $(schedctl token), run where the controller runs")
	case c.AuthSocket == "":
		return nil, errs.New(errs.Unauthenticated, "no way to say who asks: TCP takes a token only, and %s names no socket of the controller", c.Path).
			WithHint("set SCHED_JWT to a token, or give AuthInfo=socket=PATH")
	}
	return list, nil
}

func tcp(c *conf.Cluster) []client.Address {
	var list []client.Address
	for _, h := range c.Controllers {
		list = append(list, client.Address{Name: h.Name, Network: "tcp", Address: net.JoinHostPort(h.Address, strconv.Itoa(c.ControllerPort))})
	}
	return list
}
