package gateway

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"schedrestd/integration/harness"
)

// TestAllInterfaces checks that the gateway listens on every IPv4 and IPv6
// address of the machine if LISTEN has no host.
func TestAllInterfaces(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	port := harness.FreePort(t)
	g := l.StartGateway(t, nil, fmt.Sprintf(":%d", port))
	list, err := net.InterfaceAddrs()
	harness.Must(t, err)
	checked := 0
	for _, a := range list {
		ip := a.(*net.IPNet).IP
		if ip.IsLinkLocalUnicast() {
			continue
		}
		checked++
		g.CheckServes(net.JoinHostPort(ip.String(), fmt.Sprint(port)))
	}
	if checked == 0 {
		t.Fatal("this machine has no address")
	}
	g.CheckServes(fmt.Sprintf("127.1.2.3:%d", port)) // all of 127.0.0.0/8 belongs to this machine
}

// TestIPv6 checks that the gateway listens only on the IPv6 address that LISTEN
// contains in brackets. If there are no brackets, the gateway must not start.
func TestIPv6(t *testing.T) {
	t.Parallel()
	if probe, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skipf("this machine has no IPv6: %v", err)
	} else {
		probe.Close()
	}
	l := harness.NewDaemons(t)
	port := harness.FreePort(t)
	g := l.StartGateway(t, nil, fmt.Sprintf("[::1]:%d", port))
	g.CheckServes(fmt.Sprintf("[::1]:%d", port))
	if a, err := g.Ping(fmt.Sprintf("127.0.0.1:%d", port)); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("over IPv4: %v, %d", err, a.Status)
	}
	if log := l.FailsToStart(t, nil, nil, fmt.Sprintf("::1:%d", port)); !strings.Contains(log, "in brackets") {
		t.Errorf("without brackets:\n%s", log)
	}
}

// TestListeners checks that the gateway opens a listener for each argument, and
// for each address in SCHEDRESTD_LISTEN or SLURMRESTD_LISTEN. The gateway must
// remove the file of a UNIX socket when it exits.
func TestListeners(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	first, second := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)), fmt.Sprintf("localhost:%d", harness.FreePort(t))
	path := filepath.Join(harness.SocketDir(t, l), "s")
	for name, g := range map[string]func() *harness.Gateway{
		"arguments": func() *harness.Gateway { return l.StartGateway(t, nil, first, second, "unix:"+path) },
		"SCHEDRESTD_LISTEN": func() *harness.Gateway {
			return l.StartGateway(t, []string{"SCHEDRESTD_LISTEN=" + first + "," + second + ",unix:" + path})
		},
		"SLURMRESTD_LISTEN": func() *harness.Gateway {
			return l.StartGateway(t, []string{"SLURMRESTD_LISTEN=" + first + "," + second + ",unix:" + path})
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := g()
			for _, address := range []string{first, second, path} {
				g.CheckServes(address)
			}
			harness.Must(t, g.Stop())
			if _, err := os.Lstat(path); err == nil {
				t.Error("the socket's file was not removed")
			}
		})
	}
}

// TestHostIsIgnored checks that requests over a UNIX socket may name any host.
func TestHostIsIgnored(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	path := filepath.Join(harness.SocketDir(t, l), "s")
	l.StartGateway(t, nil, "unix:"+path)
	for _, text := range []string{
		"GET /sched/v0.0.43/ping HTTP/1.1\r\nHost: nobody.invalid:99\r\n",
		"GET /sched/v0.0.43/ping HTTP/1.1\r\nHost:\r\n",
		"GET http://elsewhere.invalid/sched/v0.0.43/ping HTTP/1.1\r\nHost: nobody.invalid\r\n",
	} {
		c, err := net.Dial("unix", path)
		harness.Must(t, err)
		fmt.Fprintf(c, "%sX-SCHED-USER-TOKEN: %s\r\nConnection: close\r\n\r\n", text, l.OwnToken)
		output, err := io.ReadAll(c)
		harness.Must(t, err)
		if got := harness.ParseAnswers(t, string(output)); harness.Statuses(got) != "[200]" {
			t.Errorf("%q: %s", text, output)
		}
	}
}

// TestSocketNotAllowed checks the error that is logged if the process has no
// permission to create the socket.
func TestSocketNotAllowed(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	dir := harness.SocketDir(t, l)
	harness.Must(t, os.Chmod(dir, 0o555))
	harness.Must(t, os.Chmod(filepath.Join(l.Dir, "etc"), 0o755))
	harness.Must(t, os.Chmod(l.Conf(), 0o644))
	harness.Must(t, os.Remove(l.Key())) // the gateway's user can't read the key, and the gateway does not need it
	var credential *syscall.Credential
	if os.Geteuid() == 0 {
		credential = &syscall.Credential{Uid: 61234, Gid: 61234, Groups: []uint32{}}
	}
	log := l.FailsToStart(t, credential, nil, "-f", l.Conf(), "unix:"+filepath.Join(dir, "s"))
	if !strings.Contains(log, filepath.Join(dir, "s")) || !strings.Contains(log, "permission denied") {
		t.Errorf("logged:\n%s", log)
	}
}

// TestNameResolvedOnce checks that the gateway looks up the host name in LISTEN
// only when it starts. It must not look the name up again when the host's
// address changes, or on SIGHUP.
func TestNameResolvedOnce(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip("needs unshare, for an /etc/hosts of its own")
	}
	l := harness.NewDaemons(t)
	hosts := filepath.Join(l.Dir, "hosts")
	harness.Must(t, os.WriteFile(hosts, []byte("127.0.0.1 localhost "+l.Node+"\n127.7.0.1 gateway.lab\n"), 0o644))
	port := harness.FreePort(t)
	p := l.Restd
	script := `set -e; mount --bind "$1" /etc/hosts; shift; exec "$@"`
	p.Args = append([]string{"--mount", "--propagation", "private", "sh", "-c", script, "sh", hosts, p.Path}, p.Args[:len(p.Args)-1]...)
	p.Args = append(p.Args, fmt.Sprintf("gateway.lab:%d", port))
	p.Path = "/usr/bin/unshare"
	g := l.StartGatewayPart(t, p, nil)
	before, after := fmt.Sprintf("127.7.0.1:%d", port), fmt.Sprintf("127.7.0.2:%d", port)
	g.CheckServes(before)
	harness.Must(t, os.WriteFile(hosts, []byte("127.0.0.1 localhost "+l.Node+"\n127.7.0.2 gateway.lab\n"), 0o644))
	harness.Must(t, syscall.Kill(g.PID(), syscall.SIGHUP))
	g.Eventually(t, "the configuration is reread", func() bool { return strings.Contains(g.Logged(), "configuration reloaded") })
	g.CheckServes(before)
	if a, err := g.Ping(after); err == nil {
		t.Errorf("the new address is served: %d", a.Status)
	}
}

// TestNameUnknown checks that the gateway does not start with an unknown host
// name.
func TestNameUnknown(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	args := append(l.Restd.Args[:len(l.Restd.Args)-1:len(l.Restd.Args)-1], "no-such-host.invalid:1")
	if log := l.FailsToStart(t, nil, nil, args...); !strings.Contains(log, "no-such-host.invalid") {
		t.Errorf("logged:\n%s", log)
	}
}
