package harness

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"schedrestd/bundled/demo/site"
	"schedrestd/bundled/demo/thread"
	"strings"
	"syscall"
	"testing"
	"time"
)

// DialFunc returns a function that connects to address.
func DialFunc(network, address string) func() (net.Conn, error) {
	return func() (net.Conn, error) { return net.Dial(network, address) }
}

// Patterns for the log lines that contain counters.
var (
	ParentCounts   = regexp.MustCompile(`(?m)^time=\S+ level=INFO msg=counters .*$`)
	KeeperCounts   = regexp.MustCompile(`keeper=\d+ .*msg=counters `)
	ResolverCounts = regexp.MustCompile(`resolver=\d+ .*msg=counters `)
	WorkerCounts   = regexp.MustCompile(`worker=\d+ .*msg=counters `)
)

// WithAuditLog returns a function for NewLab that makes the gateway write an
// audit log in a separate directory. The function sets *path to the path of the
// log.
func WithAuditLog(path *string, env ...string) func(*Lab) {
	return func(l *Lab) {
		dir := filepath.Join(l.Dir, "audit")
		Must(l.T, os.Mkdir(dir, 0o700))
		*path = filepath.Join(dir, "log")
		l.Restd.Env = append(append(l.Restd.Env, "SCHEDRESTD_AUDIT_LOG="+*path), env...)
	}
}

// WithOptions returns a function for NewLab that adds args to the gateway's
// options, and env to its environment.
func WithOptions(args []string, env ...string) func(*Lab) {
	return func(l *Lab) {
		last := len(l.Restd.Args) - 1
		l.Restd.Args = append(append(append([]string{}, l.Restd.Args[:last]...), args...), l.Restd.Args[last])
		l.Restd.Env = append(l.Restd.Env, env...)
		l.Restd.Check = func(context.Context) error { // works no matter which paths the gateway serves
			_, err := l.TryRequest(http.DefaultClient, "GET", "/healthz", "")
			return err
		}
	}
}

// Logged returns what the lab's gateway has logged so far.
func (l *Lab) Logged() string {
	data, err := os.ReadFile(l.Restd.Log)
	Must(l.T, err)
	return string(data)
}

// RequestAs sends a request without a token over a UNIX socket, as a process
// with the given uid and gid.
func (l *Lab) RequestAs(uid, gid uint32, socket, method, path, body string) (Answer, error) {
	c := NewClient(func() (net.Conn, error) { return thread.DialAs(uid, gid, socket) })
	return l.TryRequest(c, method, path, body, "X-SCHED-USER-TOKEN:")
}

// SocketDir returns a directory in which the gateway may create sockets that
// any user can reach.
func SocketDir(t *testing.T, l *Lab) string {
	t.Helper()
	dir := filepath.Join(l.Dir, "rest")
	Must(t, os.MkdirAll(dir, 0o755))
	return dir
}

// Gateway is a gateway that a test starts in addition to the lab's gateway.
type Gateway struct {
	*site.Daemon
	Lab *Lab
	T   *testing.T
}

// StartGateway starts a gateway with the given environment variables and
// arguments, and waits until the gateway is ready. Unless args begin with -f,
// the gateway also has the options of the lab's gateway, which set its
// configuration and its user.
func (l *Lab) StartGateway(t *testing.T, env []string, args ...string) *Gateway {
	t.Helper()
	p := l.Restd
	p.Args = append(append([]string{}, l.Restd.Args[:len(l.Restd.Args)-1]...), args...)
	if len(args) > 0 && args[0] == "-f" {
		p.Args = args
	}
	return l.StartGatewayPart(t, p, env)
}

// StartGatewayPart starts the gateway that p describes, with env added to its
// environment. It waits until the gateway is ready.
func (l *Lab) StartGatewayPart(t *testing.T, p site.Part, env []string) *Gateway {
	t.Helper()
	f, err := os.CreateTemp(filepath.Join(l.Dir, "log"), "gate-")
	Must(t, err)
	f.Close()
	p.Log = f.Name()
	p.Env = append(append([]string{}, p.Env...), env...)
	g := &Gateway{Lab: l, T: t}
	p.Check = func(context.Context) error {
		if !strings.Contains(g.Logged(), "msg=serving") {
			return fmt.Errorf("it does not log that it serves:\n%s", g.Logged())
		}
		return nil
	}
	g.Daemon, err = site.Start(p)
	Must(t, err)
	t.Cleanup(func() {
		g.Stop()
		if t.Failed() {
			t.Logf("the gateway logged:\n%s", strings.Join(g.LastLines(40), "\n"))
		}
	})
	if err := g.WaitReady(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, g.Logged())
	}
	return g
}

// Logged returns what the gateway has logged so far.
func (g *Gateway) Logged() string {
	if g.Daemon == nil {
		return ""
	}
	text, err := os.ReadFile(g.Log)
	Must(g.T, err)
	return string(text)
}

// Eventually does the same as the function Eventually, and fails at once if the gateway
// exits.
func (g *Gateway) Eventually(t *testing.T, event string, condition func() bool) {
	t.Helper()
	eventually(t, event, g.Done(), condition)
}

// Ping sends a ping to the gateway at address, such as "127.0.0.1:80" or the
// path of a UNIX socket.
func (g *Gateway) Ping(address string) (Answer, error) {
	network := "tcp"
	if strings.HasPrefix(address, "/") {
		network = "unix"
	}
	c := NewClient(func() (net.Conn, error) { return net.Dial(network, address) })
	return g.Lab.TryRequest(c, "GET", "/sched/"+Version+"/ping", "")
}

// NewClient returns a client that makes a new connection for each request.
func NewClient(dial func() (net.Conn, error)) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return dial() }}}
}

// CheckServes fails the test unless the gateway answers at address.
func (g *Gateway) CheckServes(address string) {
	g.T.Helper()
	a, err := g.Ping(address)
	if err != nil {
		g.T.Errorf("%s: %v", address, err)
		return
	}
	a.Want(g.T, 200)
}

// Workers returns the process ids of the gateway's workers.
func (g *Gateway) Workers() []int {
	g.T.Helper()
	return (&Lab{T: g.T, Daemons: map[string]*site.Daemon{"schedrestd": g.Daemon}}).Workers()
}

// FreePort returns a free port of the loopback interface. Until this process
// exits, no other call returns this port, not even a call in another process.
func FreePort(t *testing.T) int {
	t.Helper()
	ports, err := site.FreePorts(1)
	Must(t, err)
	return ports[0]
}

// FailsToStart runs a gateway, checks that it fails to start, and returns its
// log.
func (l *Lab) FailsToStart(t *testing.T, credential *syscall.Credential, env []string, args ...string) string {
	t.Helper()
	cmd := l.InetdCommand()
	cmd.Args = append(cmd.Args[:1], args...)
	cmd.Env = append(cmd.Env, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	cmd.Stdin = new(bytes.Buffer)
	timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() }) // in case it serves after all
	defer timer.Stop()
	out, log, status := RunCommand(t, cmd)
	if status != 1 || out != "" || !strings.Contains(log, "error: ") {
		t.Errorf("%q: exit status %d, printed %q\n%s", args, status, out, log)
	}
	return log
}
