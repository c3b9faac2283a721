package integration

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"schedrestd/demo/thread"
)

// network is a network namespace of a test's own, with nothing but loopback.
type network struct {
	name   string // as ip-netns(8) has it
	handle netns.NsHandle
}

// newNetwork makes one. It goes with the test.
func newNetwork(t *testing.T, name string) network {
	t.Helper()
	needRoot(t)
	n := network{name: fmt.Sprintf("test-%d-%s", os.Getpid(), name)}
	err := thread.Apart(func() (err error) {
		if n.handle, err = netns.NewNamed(n.name); err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		lo, err := unix.NewIfreq("lo")
		if err != nil {
			return err
		}
		lo.SetUint16(unix.IFF_UP)
		return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
	})
	if errors.Is(err, unix.EPERM) {
		t.Skipf("root may make no network namespace here: %v", err)
	}
	t.Cleanup(func() {
		n.forget()
		n.handle.Close()
	})
	must(t, err)
	return n
}

// forget takes its name away, as "ip netns del" does.
func (n network) forget() { netns.DeleteNamed(n.name) }

// dials makes connections that begin in n.
func (n network) dials(network, address string) func() (net.Conn, error) {
	return func() (conn net.Conn, err error) {
		return conn, thread.Apart(func() error {
			if err := netns.Set(n.handle); err != nil {
				return err
			}
			conn, err = net.Dial(network, address)
			return err
		})
	}
}

// TestNetworkNamespaces: who is in the namespace that SCHEDRESTD_NETNS names reaches the gateway, nobody else does, and
// daemons are asked from the one that SCHEDRESTD_CONTROLLER_NETNS names. The gateway's own is a third, which reaches nobody.
// So it stays after a SIGHUP, with new workers, and when the names are gone.
func TestNetworkNamespaces(t *testing.T) {
	served, own := newNetwork(t, "served"), newNetwork(t, "own")
	l := newLab(t)
	four, six := fmt.Sprintf("127.0.0.1:%d", freePort(t)), fmt.Sprintf("[::1]:%d", freePort(t))
	every := freePort(t)
	path := filepath.Join(l.Dir, "run", "inside.sock")
	within := l.restd
	within.Path = "/usr/bin/nsenter"
	within.Args = append([]string{"--net=/run/netns/" + own.name, l.restd.Path}, l.restd.Args[:len(l.restd.Args)-1]...)
	within.Args = append(within.Args, "-a", "rest_auth/jwt", four, six, fmt.Sprintf(":%d", every), "unix:"+path)

	// With tokens alone they are asked over TCP and by no socket.
	g := l.gateOf(t, within, []string{"SCHEDRESTD_NETNS=" + served.name, fmt.Sprintf("SLURMRESTD_CONTROLLER_NETNS=/proc/%d/ns/net", l.daemons["schedctld"].PID())})
	ask := func(dial func() (net.Conn, error)) (answer, error) {
		return l.try(clientOf(dial), "GET", "/sched/"+version+"/diag", "")
	}
	check := func(when string) {
		t.Helper()
		for _, address := range []string{four, six, fmt.Sprintf("127.0.0.1:%d", every), fmt.Sprintf("[::1]:%d", every)} {
			a, err := ask(served.dials("tcp", address))
			if err != nil || a.status != 200 {
				t.Errorf("%s, %s from inside: %v, %d %s", when, address, err, a.status, a.text)
			}
			for from, dial := range map[string]func() (net.Conn, error){"the test's": dials("tcp", address), "the gateway's": own.dials("tcp", address)} {
				if a, err := ask(dial); !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("%s, %s from %s: %v, %d", when, address, from, err, a.status)
				}
			}
		}
		a, err := ask(own.dials("unix", path))
		if err != nil || a.status != 200 {
			t.Errorf("%s, by the socket: %v, %d %s", when, err, a.status, a.text)
		}
	}
	check("at first")
	for _, line := range []string{" netns=" + served.name + " netns_listen=\"[" + four + " ", " netns=" + served.name + " controller_netns=/proc/"} {
		if !strings.Contains(g.log(), line) || strings.Contains(g.log(), "netns_listen=[unix") {
			t.Errorf("the log has no %s:\n%s", line, g.log())
		}
	}
	served.forget()
	own.forget()
	check("without names")
	must(t, syscall.Kill(g.PID(), syscall.SIGHUP))
	eventually(t, "it rereads", func() bool { return strings.Contains(g.log(), "configuration is reread") })
	check("reread")
	for _, pid := range g.workers() {
		must(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	eventually(t, "others take their places", func() bool { a, err := ask(served.dials("tcp", four)); return err == nil && a.status == 200 })
	check("with new workers")
}

// TestDaemonsFromTheGatewaysOwn: without SCHEDRESTD_CONTROLLER_NETNS daemons are asked from where the gateway
// was started, wherever it listens.
func TestDaemonsFromTheGatewaysOwn(t *testing.T) {
	served := newNetwork(t, "alone")
	l := newLab(t)
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	l.gate(t, []string{"SCHEDRESTD_NETNS=/run/netns/" + served.name}, "-a", "rest_auth/jwt", address)
	diag := func(address string) answer {
		a, err := l.try(clientOf(served.dials("tcp", address)), "GET", "/sched/"+version+"/diag", "")
		must(t, err)
		return a
	}
	diag(address).want(t, 200)

	address = fmt.Sprintf("127.0.0.1:%d", freePort(t))
	l.gate(t, []string{"SCHEDRESTD_NETNS=" + served.name, "SCHEDRESTD_CONTROLLER_NETNS=" + served.name}, "-a", "rest_auth/jwt", address)
	if a := diag(address); a.status == 200 {
		t.Errorf("daemons are reached from a namespace that has none: %s", a.text)
	}
}

// TestNetworkNamespaceRefused: what is no network namespace is refused at the start, with what to do.
func TestNetworkNamespaceRefused(t *testing.T) {
	l := newLab(t)
	// Of another process: a test that was another user for a moment leaves this one's /proc to him.
	other := exec.Command("sleep", "600")
	must(t, other.Start())
	defer func() { other.Process.Kill(); other.Wait() }()
	own := fmt.Sprintf("/proc/%d/ns/net", other.Process.Pid)
	unixOnly := "unix:" + filepath.Join(l.Dir, "run", "other.sock")
	tests := map[string]struct {
		value, listen, want string
		daemonsToo          bool // of the other variable likewise
	}{
		"unknown":    {"no-such-name", "127.0.0.1:0", "there is no network namespace /run/netns/no-such-name", true},
		"gone":       {"/proc/0/ns/net", "127.0.0.1:0", "there is no network namespace", true},
		"a file":     {"/etc/passwd", "127.0.0.1:0", "is not a network namespace", true},
		"directory":  {"/proc", "127.0.0.1:0", "is not a network namespace", true},
		"other kind": {fmt.Sprintf("/proc/%d/ns/ipc", other.Process.Pid), "127.0.0.1:0", "is not a network namespace", true},
		"relative":   {"netns/x", "127.0.0.1:0", "neither the name of a network namespace nor an absolute path", true},
		"parent":     {"..", "127.0.0.1:0", "neither the name", true},
		"address":    {own, "192.0.2.1:0", "no such address", false},
		"no TCP":     {own, unixOnly, "without a TCP address", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{"SCHEDRESTD_NETNS", "SCHEDRESTD_CONTROLLER_NETNS"} {
				if variable != "SCHEDRESTD_NETNS" && !tt.daemonsToo {
					continue
				}
				args := append(append([]string{}, l.restd.Args[:len(l.restd.Args)-1]...), tt.listen)
				log := l.fails(t, nil, append(l.restd.Env[:len(l.restd.Env):len(l.restd.Env)], variable+"="+tt.value), args...)
				if !strings.Contains(log, variable+"="+tt.value) || !strings.Contains(log, tt.want) || !strings.Contains(log, "hint: ") {
					t.Errorf("%s:\n%s", variable, log)
				}
			}
		})
	}
}

// TestNetworkNamespaceNeedsRoot: root without CAP_SYS_ADMIN can't enter another one, and is told who can.
func TestNetworkNamespaceNeedsRoot(t *testing.T) {
	other := newNetwork(t, "closed")
	l := newLab(t)
	for _, variable := range []string{"SCHEDRESTD_NETNS", "SCHEDRESTD_CONTROLLER_NETNS"} {
		cmd := exec.CommandContext(t.Context(), "setpriv", append([]string{"--bounding-set=-sys_admin", l.restd.Path}, l.restd.Args[:len(l.restd.Args)-1]...)...)
		cmd.Args = append(cmd.Args, "127.0.0.1:0")
		cmd.Env = append(append(os.Environ(), l.restd.Env...), variable+"="+other.name)
		out, err := cmd.CombinedOutput()
		log := string(out)
		if err == nil || !strings.Contains(log, variable+"="+other.name) || !strings.Contains(log, "CAP_SYS_ADMIN") || !strings.Contains(log, "NetworkNamespacePath=") {
			t.Errorf("%s: %v\n%s", variable, err, log)
		}
	}
}
