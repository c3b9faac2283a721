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

// Part is one daemon of a site: how to start it, and how it shows that it is there.
type Part struct {
	Program
	At      string                      // where it answers, for people
	Answers func(context.Context) error // nil error: it does
}

// part is the program name of the directory bin, started with a configuration.
func (s *Site) part(bin, name, conf string) Part {
	return Part{Program: Program{Name: name, Path: filepath.Join(bin, name), Args: []string{"-f", conf}, Log: s.Log(name)}}
}

// Scheddbd is the accounting daemon: it is there when it takes connections. Whether it
// answers, the gateway's diag says.
func (s *Site) Scheddbd(bin string) Part {
	p := s.part(bin, "scheddbd", s.DbdConf())
	p.At = fmt.Sprintf("127.0.0.1:%d", s.Accounting)
	p.Answers = func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", p.At)
		if err == nil {
			conn.Close()
		}
		return err
	}
	return p
}

// Schedctld is the controller: it is there when it makes a token.
func (s *Site) Schedctld(bin string) Part {
	p := s.part(bin, "schedctld", s.Conf())
	p.At = fmt.Sprintf("127.0.0.1:%d", s.Controller)
	p.Answers = func(ctx context.Context) error {
		_, err := s.Token(ctx, "", time.Minute)
		return err
	}
	return p
}

// Schedrestd is the gateway at listen (HOST:PORT). As root its worker is nobody's; else the worker has
// the uid of everything else, which has to be allowed. It is there when both
// daemons answer through it.
func (s *Site) Schedrestd(bin, listen string) Part {
	p := s.part(bin, "schedrestd", s.Conf())
	p.At = "http://" + reached(listen)
	p.Env = []string{"SCHED_JWT=daemon"}
	if os.Geteuid() == 0 {
		p.Args = append(p.Args, "-u", Nobody, "-g", NobodyGroup())
	} else {
		p.Env = append(p.Env, "SCHEDRESTD_SECURITY=disable_user_check")
	}
	p.Args = append(p.Args, listen)
	p.Answers = func(ctx context.Context) error {
		token, err := s.Token(ctx, "", time.Minute)
		if err != nil {
			return err
		}
		g := NewGateway(p.At, token)
		if _, err := g.Ping(ctx); err != nil {
			return err
		}
		return g.Diag(ctx)
	}
	return p
}

// Nobody is who the worker runs as when the gateway is root's.
const Nobody = "nobody"

// NobodyGroup is nobody's group, which distributions name differently.
func NobodyGroup() string {
	if g, err := nss.LookupGroup("nogroup"); err == nil {
		return g.Name
	}
	return Nobody
}

// reached is where a client of this machine finds what listens at listen.
func reached(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// Token asks the controller for a token of user ("": this process's), as the kernel
// vouches for this process on the controller's socket.
func (s *Site) Token(ctx context.Context, user string, lifespan time.Duration) (string, error) {
	c := client.New(client.Config{Controllers: []client.Address{{Name: s.Node, Network: "unix", Address: s.Socket()}}})
	return c.Token(ctx, model.Credential{}, user, lifespan)
}
