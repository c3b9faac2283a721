package demo

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"schedrestd/become"
	"schedrestd/demo/site"
)

// part is one daemon of the demo: how to start it, and how it shows that it is there.
type part struct {
	name string // of the program
	role string // for the person who watches
	at   string // where it answers
	args []string
	env  []string
	try  func(context.Context) error // nil error: it answers
}

// accounting is scheddbd: it is there when it takes connections. Whether it answers, the
// gateway's diag says later.
func (s *stage) accounting() part {
	at := fmt.Sprintf("127.0.0.1:%d", s.Accounting)
	return part{
		name: "scheddbd", role: "accounting", at: at,
		args: []string{"-f", s.DbdConf()},
		try: func(ctx context.Context) error {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", at)
			if err == nil {
				conn.Close()
			}
			return err
		},
	}
}

// controller is schedctld: it is there when it has made the token.
func (s *stage) controller() part {
	return part{
		name: "schedctld", role: "controller", at: fmt.Sprintf("127.0.0.1:%d", s.Controller),
		args: []string{"-f", s.Conf()},
		try: func(ctx context.Context) error {
			user := ""
			if s.foreign() {
				user = s.user.Name
			}
			token, err := s.Token(ctx, s.Conf(), user, tokenLife)
			if err != nil {
				return err
			}
			return s.keep(token)
		},
	}
}

// restd is schedrestd: it is there when both daemons answer through it.
func (s *stage) restd() part {
	p := part{
		name: "schedrestd", role: "gateway", at: "http://" + s.address(),
		args: []string{"-f", s.Conf()},
		env:  []string{"SCHED_JWT=daemon"},
		try: func(ctx context.Context) error {
			s.gateway = newGateway(s.address(), s.token)
			if _, err := s.gateway.ping(ctx); err != nil {
				return err
			}
			return s.gateway.diag(ctx)
		},
	}
	if os.Geteuid() == 0 {
		p.args = append(p.args, "-u", nobody, "-g", nobodyGroup())
	} else {
		p.env = append(p.env, "SCHEDRESTD_SECURITY=disable_user_check")
	}
	p.args = append(p.args, s.Listen)
	return p
}

// nobody is who the worker runs as when the demo is root's.
const nobody = "nobody"

// nobodyGroup is nobody's group, which distributions name differently.
func nobodyGroup() string {
	if g, err := become.LookupGroup("nogroup"); err == nil {
		return g.Name
	}
	return nobody
}

// launch starts p.
func (s *stage) launch(p part) (*site.Daemon, error) {
	bin, err := findBinaries()
	if err != nil {
		return nil, err
	}
	return site.Start(site.Program{Name: p.name, Path: filepath.Join(bin, p.name), Args: p.args, Env: p.env, Log: s.Log(p.name)})
}

// address is where a client of this machine finds the gateway.
func (s *stage) address() string {
	host, port, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return s.Listen
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
