package admission

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

	"schedrestd/bundled/demo/thread"
	"schedrestd/integration/harness"
)

// network is a network namespace for one test, with only a loopback interface.
type network struct {
	name   string // name for ip-netns(8)
	handle netns.NsHandle
}

// newNetwork creates a network that is removed at the end of the test.
func newNetwork(t *testing.T, name string) network {
	t.Helper()
	harness.NeedRoot(t)
	n := network{name: fmt.Sprintf("test-%d-%s", os.Getpid(), name)}
	err := thread.OnNewThread(func() (err error) {
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
		t.Skipf("root can't create a network namespace here: %v", err)
	}
	t.Cleanup(func() {
		n.deleteName()
		n.handle.Close()
	})
	harness.Must(t, err)
	return n
}

// deleteName removes the name of n, as "ip netns del" does.
func (n network) deleteName() { netns.DeleteNamed(n.name) }

// dialFunc returns a function that connects to address from the namespace n.
func (n network) dialFunc(network, address string) func() (net.Conn, error) {
	return harness.DialFrom(n.handle, network, address)
}

// TestNetworkNamespaces checks that, over TCP, only clients in the namespace
// that SCHEDRESTD_NETNS specifies reach the gateway. The gateway must connect
// to daemons from the namespace that SCHEDRESTD_CONTROLLER_NETNS specifies. The
// gateway itself is in a third namespace, from which neither the gateway nor
// the daemons can be reached over TCP. The result must be the same after the
// names of the namespaces are removed, after a SIGHUP, and with new workers.
func TestNetworkNamespaces(t *testing.T) {
	t.Parallel()
	servedNS, gatewayNS := newNetwork(t, "served"), newNetwork(t, "own")
	l := harness.NewLab(t)
	four, six := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)), fmt.Sprintf("[::1]:%d", harness.FreePort(t))
	wildcardPort := harness.FreePort(t)
	path := filepath.Join(l.Dir, "run", "inside.sock")
	part := l.Restd
	part.Path = "/usr/bin/nsenter"
	part.Args = append([]string{"--net=/run/netns/" + gatewayNS.name, l.Restd.Path}, l.Restd.Args[:len(l.Restd.Args)-1]...)
	part.Args = append(part.Args, "-a", "rest_auth/jwt", four, six, fmt.Sprintf(":%d", wildcardPort), "unix:"+path)

	// With rest_auth/jwt alone, the daemons are reached over TCP and not over a
	// UNIX socket.
	g := l.StartGatewayPart(t, part, []string{"SCHEDRESTD_NETNS=" + servedNS.name, fmt.Sprintf("SLURMRESTD_CONTROLLER_NETNS=/proc/%d/ns/net", l.Daemons["schedctld"].PID())})
	send := func(dial func() (net.Conn, error)) (harness.Answer, error) {
		return l.TryRequest(harness.NewClient(dial), "GET", "/sched/"+harness.Version+"/diag", "")
	}
	check := func(stage string) {
		t.Helper()
		for _, address := range []string{four, six, fmt.Sprintf("127.0.0.1:%d", wildcardPort), fmt.Sprintf("[::1]:%d", wildcardPort)} {
			a, err := send(servedNS.dialFunc("tcp", address))
			if err != nil || a.Status != 200 {
				t.Errorf("%s, %s from inside: %v, %d %s", stage, address, err, a.Status, a.Text)
			}
			for from, dial := range map[string]func() (net.Conn, error){"the test's": harness.DialFunc("tcp", address), "the gateway's": gatewayNS.dialFunc("tcp", address)} {
				if a, err := send(dial); !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("%s, %s from %s: %v, %d", stage, address, from, err, a.Status)
				}
			}
		}
		a, err := send(gatewayNS.dialFunc("unix", path))
		if err != nil || a.Status != 200 {
			t.Errorf("%s, over the socket: %v, %d %s", stage, err, a.Status, a.Text)
		}
	}
	check("at first")
	for _, line := range []string{" netns=" + servedNS.name + " netns_listen=\"[" + four + " ", " netns=" + servedNS.name + " controller_netns=/proc/"} {
		if !strings.Contains(g.Logged(), line) || strings.Contains(g.Logged(), "netns_listen=[unix") {
			t.Errorf("the log has no %s:\n%s", line, g.Logged())
		}
	}
	servedNS.deleteName()
	gatewayNS.deleteName()
	check("without names")
	harness.Must(t, syscall.Kill(g.PID(), syscall.SIGHUP))
	g.Eventually(t, "the gateway rereads its configuration", func() bool { return strings.Contains(g.Logged(), "configuration reloaded") })
	check("reread")
	for _, pid := range g.Workers() {
		harness.Must(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	harness.Eventually(t, "other workers replace them", func() bool { a, err := send(servedNS.dialFunc("tcp", four)); return err == nil && a.Status == 200 })
	check("with new workers")
}

// TestDaemonsFromTheGatewaysOwn checks that, without
// SCHEDRESTD_CONTROLLER_NETNS, the gateway connects to daemons from the
// namespace in which it was started, wherever it listens.
func TestDaemonsFromTheGatewaysOwn(t *testing.T) {
	t.Parallel()
	servedNS := newNetwork(t, "alone")
	l := harness.NewLab(t)
	address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	l.StartGateway(t, []string{"SCHEDRESTD_NETNS=/run/netns/" + servedNS.name}, "-a", "rest_auth/jwt", address)
	diag := func(address string) harness.Answer {
		a, err := l.TryRequest(harness.NewClient(servedNS.dialFunc("tcp", address)), "GET", "/sched/"+harness.Version+"/diag", "")
		harness.Must(t, err)
		return a
	}
	diag(address).Want(t, 200)

	address = fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	l.StartGateway(t, []string{"SCHEDRESTD_NETNS=" + servedNS.name, "SCHEDRESTD_CONTROLLER_NETNS=" + servedNS.name}, "-a", "rest_auth/jwt", address)
	if a := diag(address); a.Status == 200 {
		t.Errorf("daemons are reached from a namespace that has none: %s", a.Text)
	}
}

// TestNetworkNamespaceRefused checks that the gateway does not start if
// SCHEDRESTD_NETNS or SCHEDRESTD_CONTROLLER_NETNS can't be used, and that the
// error has a hint.
func TestNetworkNamespaceRefused(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	// Use another process's directory in /proc. If an earlier test changed the
	// user of a thread, this process's own directory may still belong to that
	// user.
	sleeper := exec.Command("sleep", "600")
	harness.Must(t, sleeper.Start())
	defer func() { sleeper.Process.Kill(); sleeper.Wait() }()
	netnsPath := fmt.Sprintf("/proc/%d/ns/net", sleeper.Process.Pid)
	unixOnly := "unix:" + filepath.Join(l.Dir, "run", "other.sock")
	tests := map[string]struct {
		value, listen, want string
		bothVariables       bool // also try the value with SCHEDRESTD_CONTROLLER_NETNS
	}{
		"unknown":    {"no-such-name", "127.0.0.1:0", "no network namespace /run/netns/no-such-name", true},
		"gone":       {"/proc/0/ns/net", "127.0.0.1:0", "no network namespace", true},
		"a file":     {"/etc/passwd", "127.0.0.1:0", "is not a network namespace", true},
		"directory":  {"/proc", "127.0.0.1:0", "is not a network namespace", true},
		"other kind": {fmt.Sprintf("/proc/%d/ns/ipc", sleeper.Process.Pid), "127.0.0.1:0", "is not a network namespace", true},
		"relative":   {"netns/x", "127.0.0.1:0", "neither the name of a network namespace nor an absolute path", true},
		"parent":     {"..", "127.0.0.1:0", "neither the name", true},
		"address":    {netnsPath, "192.0.2.1:0", "no such address", false},
		"no TCP":     {netnsPath, unixOnly, "needs a TCP address", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{"SCHEDRESTD_NETNS", "SCHEDRESTD_CONTROLLER_NETNS"} {
				if variable != "SCHEDRESTD_NETNS" && !tt.bothVariables {
					continue
				}
				args := append(append([]string{}, l.Restd.Args[:len(l.Restd.Args)-1]...), tt.listen)
				log := l.FailsToStart(t, nil, append(l.Restd.Env[:len(l.Restd.Env):len(l.Restd.Env)], variable+"="+tt.value), args...)
				if !strings.Contains(log, variable+"="+tt.value) || !strings.Contains(log, tt.want) || !strings.Contains(log, "hint: ") {
					t.Errorf("%s:\n%s", variable, log)
				}
			}
		})
	}
}

// TestNetworkNamespaceNeedsRoot checks that root without CAP_SYS_ADMIN can't
// enter another namespace, and that the error names this capability.
func TestNetworkNamespaceNeedsRoot(t *testing.T) {
	t.Parallel()
	ns := newNetwork(t, "closed")
	l := harness.NewDaemons(t)
	for _, variable := range []string{"SCHEDRESTD_NETNS", "SCHEDRESTD_CONTROLLER_NETNS"} {
		cmd := exec.CommandContext(t.Context(), "setpriv", append([]string{"--bounding-set=-sys_admin", l.Restd.Path}, l.Restd.Args[:len(l.Restd.Args)-1]...)...)
		cmd.Args = append(cmd.Args, "127.0.0.1:0")
		cmd.Env = append(append(os.Environ(), l.Restd.Env...), variable+"="+ns.name)
		out, err := cmd.CombinedOutput()
		log := string(out)
		if err == nil || !strings.Contains(log, variable+"="+ns.name) || !strings.Contains(log, "CAP_SYS_ADMIN") || !strings.Contains(log, "NetworkNamespacePath=") {
			t.Errorf("%s: %v\n%s", variable, err, log)
		}
	}
}
