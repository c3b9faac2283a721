package site

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"schedrestd/become/nss"
	"schedrestd/model"
	"schedrestd/rpc/client"
)

// A Part describes how to start one daemon of a site, and how to check that the
// daemon serves requests.
type Part struct {
	Program
	Address string                      // address to show
	Check   func(context.Context) error // returns nil if the daemon serves
}

// newPart returns a Part for the program with this name in the directory bin.
// The program uses the configuration file conf.
func (s *Site) newPart(bin, name, conf string) Part {
	return Part{Program: Program{Name: name, Path: filepath.Join(bin, name), Args: []string{"-f", conf}, Log: s.Log(name)}}
}

// Scheddbd returns a Part for the accounting daemon. The check of this Part
// succeeds when the daemon accepts connections. The check of the Part that
// Schedrestd returns shows whether the accounting daemon also answers requests.
func (s *Site) Scheddbd(bin string) Part {
	p := s.newPart(bin, "scheddbd", s.DbdConf())
	p.Address = fmt.Sprintf("127.0.0.1:%d", s.Accounting)
	p.Check = func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", p.Address)
		if err == nil {
			conn.Close()
		}
		return err
	}
	return p
}

// Schedctld returns a Part for the controller. Its check succeeds when the
// controller creates a token.
func (s *Site) Schedctld(bin string) Part {
	p := s.newPart(bin, "schedctld", s.Conf())
	p.Address = fmt.Sprintf("127.0.0.1:%d", s.Controller)
	p.Check = func(ctx context.Context) error {
		_, err := s.Token(ctx, "", time.Minute)
		return err
	}
	return p
}

// Schedrestd returns a Part for the gateway, which listens on the address
// listen (HOST:PORT). Its check succeeds when both daemons answer requests
// through the gateway.
//
// If root starts the gateway, its workers run as `nobody`. Otherwise the
// workers have the same uid as all other processes, which is permitted only
// with disable_user_check.
func (s *Site) Schedrestd(bin, listen string) Part {
	p := s.newPart(bin, "schedrestd", s.Conf())
	p.Address = "http://" + dialAddress(listen)
	p.Env = []string{"SCHED_JWT=daemon"}
	if os.Geteuid() == 0 {
		p.Args = append(p.Args, "-u", Nobody, "-g", NobodyGroup())
	} else {
		p.Env = append(p.Env, "SCHEDRESTD_SECURITY=disable_user_check")
	}
	if s.TLS {
		p.Args = append(p.Args, "-a", "rest_auth/jwt") // so that the gateway uses no socket of a daemon
	}
	p.Args = append(p.Args, listen)
	p.Check = func(ctx context.Context) error {
		token, err := s.Token(ctx, "", time.Minute)
		if err != nil {
			return err
		}
		g := NewGateway(p.Address, token)
		if _, err := g.Ping(ctx); err != nil {
			return err
		}
		return g.Diag(ctx)
	}
	return p
}

// Nobody is the name of the user that the workers run as if root starts the
// gateway.
const Nobody = "nobody"

// NobodyGroup returns the name of the group of the user `nobody`. The name
// differs between distributions.
func NobodyGroup() string {
	if g, err := nss.LookupGroup("nogroup"); err == nil {
		return g.Name
	}
	return Nobody
}

// dialAddress returns the address to which a client on this machine must
// connect if a program listens on the address listen.
func dialAddress(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// Token requests a token for user from the controller, over the controller's
// UNIX socket. If user is "", the token is for the user of this process.
func (s *Site) Token(ctx context.Context, user string, lifespan time.Duration) (string, error) {
	c := client.New(client.Config{Controllers: []client.Address{{Name: s.Node, Network: "unix", Address: s.Socket()}}})
	return c.Token(ctx, model.Credential{}, user, lifespan)
}
