package integration

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"schedrestd/demo/site"
)

// The tests in spec_*_test.go show lines of the specification that no other test shows, by the
// programs themselves. Which line is shown where is the table in docs/SPECIFICATION.md.

// gate is a gateway of a test's own beside the lab's.
type gate struct {
	*site.Daemon
	lab *lab
	t   *testing.T
}

// gate starts one with these variables and arguments, and returns when it serves. Who serves, and the
// configuration, are as in the lab, unless args begin with -f.
func (l *lab) gate(t *testing.T, env []string, args ...string) *gate {
	t.Helper()
	p := l.restd
	p.Args = append(append([]string{}, l.restd.Args[:len(l.restd.Args)-1]...), args...)
	if len(args) > 0 && args[0] == "-f" {
		p.Args = args
	}
	return l.gateOf(t, p, env)
}

// gateOf starts the gateway p, with env added to its environment.
func (l *lab) gateOf(t *testing.T, p site.Part, env []string) *gate {
	t.Helper()
	f, err := os.CreateTemp(filepath.Join(l.Dir, "log"), "gate-")
	must(t, err)
	f.Close()
	p.Log = f.Name()
	p.Env = append(append([]string{}, p.Env...), env...)
	g := &gate{lab: l, t: t}
	p.Answers = func(context.Context) error {
		if !strings.Contains(g.log(), "msg=serving") {
			return fmt.Errorf("it does not say that it serves:\n%s", g.log())
		}
		return nil
	}
	g.Daemon, err = site.Start(p)
	must(t, err)
	t.Cleanup(func() {
		g.Stop()
		if t.Failed() {
			t.Logf("the gateway said:\n%s", strings.Join(g.LastLines(40), "\n"))
		}
	})
	if err := g.Await(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, g.log())
	}
	return g
}

// log is what the gateway has logged.
func (g *gate) log() string {
	if g.Daemon == nil {
		return ""
	}
	text, err := os.ReadFile(g.Log)
	must(g.t, err)
	return string(text)
}

// ping asks the gateway at an address, "127.0.0.1:80" or a path of a UNIX socket.
func (g *gate) ping(address string) (answer, error) {
	network := "tcp"
	if strings.HasPrefix(address, "/") {
		network = "unix"
	}
	c := clientOf(func() (net.Conn, error) { return net.Dial(network, address) })
	return g.lab.try(c, "GET", "/sched/"+version+"/ping", "")
}

// clientOf makes a connection for each request.
func clientOf(dial func() (net.Conn, error)) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return dial() }}}
}

// served fails the test unless the gateway answers at address.
func (g *gate) served(address string) {
	g.t.Helper()
	a, err := g.ping(address)
	if err != nil {
		g.t.Errorf("%s: %v", address, err)
		return
	}
	a.want(g.t, 200)
}

// workers are the gateway's workers.
func (g *gate) workers() []int {
	g.t.Helper()
	return (&lab{t: g.t, daemons: map[string]*site.Daemon{"schedrestd": g.Daemon}}).workers()
}

// freePort is a port of the loopback interface that nobody uses now.
func freePort(t *testing.T) int {
	t.Helper()
	ports, err := site.FreePorts(1)
	must(t, err)
	return ports[0]
}

// fails starts a gateway that is not to serve, and gives what it says.
func (l *lab) fails(t *testing.T, credential *syscall.Credential, env []string, args ...string) string {
	t.Helper()
	cmd := l.inetd()
	cmd.Args = append(cmd.Args[:1], args...)
	cmd.Env = append(cmd.Env, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	cmd.Stdin = new(bytes.Buffer)
	end := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() }) // one that serves after all
	defer end.Stop()
	out, log, status := finish(t, cmd)
	if status != 1 || out != "" || !strings.Contains(log, "error: ") {
		t.Errorf("%q: exit status %d, printed %q\n%s", args, status, out, log)
	}
	return log
}
