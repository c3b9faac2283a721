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

// Part is a daemon of a site: how to start it, and how to check that it serves.
type Part struct {
	Program
	Address string                      // address to show
	Check   func(context.Context) error // returns nil if the daemon serves
}

// newPart returns the program with this name in the directory bin. The daemon
// is started with the configuration file conf.
func (s *Site) newPart(bin, name, conf string) Part {
	return Part{Program: Program{Name: name, Path: filepath.Join(bin, name), Args: []string{"-f", conf}, Log: s.Log(name)}}
}

// Scheddbd returns the accounting daemon. The check of this Part succeeds when
// the daemon accepts connections. Whether the daemon also answers requests is
// checked through the gateway.
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

// Schedctld returns the controller. Its check succeeds when it creates a token.
func (s *Site) Schedctld(bin string) Part {
	p := s.newPart(bin, "schedctld", s.Conf())
	p.Address = fmt.Sprintf("127.0.0.1:%d", s.Controller)
	p.Check = func(ctx context.Context) error {
		_, err := s.Token(ctx, "", time.Minute)
		return err
	}
	return p
}

// Schedrestd returns the gateway that listens on the address listen
// (HOST:PORT). If root starts the gateway, its workers run as `nobody`.
// Otherwise the workers have the same uid as all other processes, which only
// disable_user_check permits. The check of this Part succeeds when both daemons
// answer requests through the gateway.
func (s *Site) Schedrestd(bin, listen string) Part {
	p := s.newPart(bin, "schedrestd", s.Conf())
	p.Address = "http://" + dialAddress(listen)
	p.Env = []string{"SCHED_JWT=daemon"}
	if os.Geteuid() == 0 {
		p.Args = append(p.Args, "-u", Nobody, "-g", NobodyGroup())
	} else {
		p.Env = append(p.Env, "SCHEDRESTD_SECURITY=disable_user_check")
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

// Nobody is the user that the worker runs as if root starts the gateway.
const Nobody = "nobody"

// NobodyGroup returns the name of the group of `nobody`. It differs between
// distributions.
func NobodyGroup() string {
	if g, err := nss.LookupGroup("nogroup"); err == nil {
		return g.Name
	}
	return Nobody
}

// dialAddress returns the address through which a client on this machine
// reaches a program that listens on the address listen.
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

// Token requests a token for user ("": the user of this process) from the
// controller, over the controller's UNIX socket.
func (s *Site) Token(ctx context.Context, user string, lifespan time.Duration) (string, error) {
	c := client.New(client.Config{Controllers: []client.Address{{Name: s.Node, Network: "unix", Address: s.Socket()}}})
	return c.Token(ctx, model.Credential{}, user, lifespan)
}
