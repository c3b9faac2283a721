package gateway

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"schedrestd/integration/harness"
)

// A namedLab is a lab whose gateway reaches the daemons by the names ctl.lab and
// dbd.lab. The test decides what these names mean.
type namedLab struct {
	*harness.Lab
	*harness.Gateway
	hosts string // what the gateway sees as /etc/hosts
}

// startNamed starts a gateway after setting /etc/hosts to the given lines.
func startNamed(t *testing.T, lines ...string) *namedLab {
	t.Helper()
	t.Parallel()
	harness.NeedRoot(t)
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip("needs unshare, for an /etc/hosts of its own")
	}
	l := &namedLab{Lab: harness.NewDaemons(t)}
	text, err := os.ReadFile(l.Conf())
	harness.Must(t, err)
	conf := filepath.Join(l.Dir, "etc", "named.conf")
	named := strings.NewReplacer(l.Node+"(127.0.0.1)", "ctl.lab", "AccountingStorageHost=127.0.0.1", "AccountingStorageHost=dbd.lab").Replace(string(text))
	harness.Must(t, os.WriteFile(conf, []byte(named), 0o600))
	l.hosts = filepath.Join(l.Dir, "hosts")
	l.setHosts(t, lines...)
	p := l.Restd
	args := slices.Clone(p.Args)
	args[slices.Index(args, l.Conf())] = conf
	// Without rest_auth/local, the gateway uses no socket of a daemon.
	p.Args = append([]string{"--mount", "--propagation", "private", "sh", "-c", `set -e; mount --bind "$1" /etc/hosts; shift; exec "$@"`, "sh", l.hosts, p.Path, "-a", "rest_auth/jwt"}, args...)
	p.Path = "/usr/bin/unshare"
	l.Gateway = l.StartGatewayPart(t, p, nil)
	return l
}

func (l *namedLab) setHosts(t *testing.T, lines ...string) {
	t.Helper()
	harness.Must(t, os.WriteFile(l.hosts, []byte(strings.Join(append(lines, "127.0.0.1 localhost "+l.Node), "\n")+"\n"), 0o644))
}

// get returns the answer to a GET of a path below /sched/VERSION/ or /scheddb/VERSION/,
// or of another path.
func (l *namedLab) get(t *testing.T, path string) harness.Answer {
	t.Helper()
	return l.Request("GET", strings.Replace(path, "VERSION", harness.Version, 1), "")
}

// moveController restarts the controller at another address of this machine.
func (l *namedLab) moveController(t *testing.T, to string) {
	t.Helper()
	l.Daemons["schedctld"].Stop()
	text, err := os.ReadFile(l.Conf())
	harness.Must(t, err)
	harness.Must(t, os.WriteFile(l.Conf(), []byte(strings.Replace(string(text), l.Node+"(127.0.0.1)", l.Node+"("+to+")", 1)), 0o600))
	l.Up(l.Ctld)
	if _, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.Controller)); err == nil {
		t.Fatal("the controller still listens at its old address")
	}
}

// TestControllerMoves checks that the gateway finds a controller that has moved to
// another address, without a restart and without a reload.
func TestControllerMoves(t *testing.T) {
	l := startNamed(t, "127.0.0.1 ctl.lab dbd.lab")
	l.get(t, "/sched/VERSION/jobs").Want(t, 200)
	l.get(t, "/scheddb/VERSION/users").Want(t, 200)
	l.moveController(t, "127.0.0.2")
	l.get(t, "/sched/VERSION/jobs").Want(t, 503)
	l.setHosts(t, "127.0.0.2 ctl.lab", "127.0.0.1 dbd.lab")
	harness.Eventually(t, "the controller is found", func() bool { return l.get(t, "/sched/VERSION/jobs").Status == 200 })
	if log := l.Gateway.Logged(); strings.Count(log, `msg="host of a daemon has other addresses" host=ctl.lab addresses=[127.0.0.2] before=[127.0.0.1]`) != 1 || strings.Contains(log, "reloaded") {
		t.Errorf("logged:\n%s", log)
	}
	l.get(t, "/scheddb/VERSION/users").Want(t, 200)
}

// TestStartWithoutName checks that the gateway starts although it can resolve no name,
// reports the reason, and serves when it can.
func TestStartWithoutName(t *testing.T) {
	l := startNamed(t)
	if log := l.Gateway.Logged(); !strings.Contains(log, "it is looked up again") || !strings.Contains(log, "SchedctldHost=ctl.lab") || !strings.Contains(log, "AccountingStorageHost=dbd.lab") {
		t.Errorf("logged:\n%s", log)
	}
	for range 2 {
		if a := l.get(t, "/readyz"); a.Status != http.StatusServiceUnavailable || !strings.Contains(a.Text, "its host name can't be resolved") {
			t.Errorf("/readyz: %d %s", a.Status, a.Text)
		}
	}
	l.get(t, "/sched/VERSION/jobs").Want(t, 503)
	l.setHosts(t, "127.0.0.1 ctl.lab dbd.lab")
	harness.Eventually(t, "the gateway is ready", func() bool { return l.get(t, "/readyz").Status == 200 })
	l.get(t, "/sched/VERSION/jobs").Want(t, 200)
	harness.Eventually(t, "the accounting daemon is found", func() bool { return l.get(t, "/scheddb/VERSION/users").Status == 200 })
}

// TestSeveralAddresses checks that the gateway uses another address of a host if the
// first ones refuse the connection.
func TestSeveralAddresses(t *testing.T) {
	l := startNamed(t, "127.0.0.3 ctl.lab dbd.lab", "::1 ctl.lab dbd.lab", "127.0.0.1 ctl.lab dbd.lab")
	for range 3 {
		l.get(t, "/sched/VERSION/jobs").Want(t, 200)
		l.get(t, "/scheddb/VERSION/users").Want(t, 200)
	}
	if a := l.get(t, "/readyz"); a.Status != 200 {
		t.Errorf("/readyz: %d %s", a.Status, a.Text)
	}
}

// TestInetdByName checks that a gateway in inetd mode finds a daemon by its name, and
// answers 503 if the name can't be resolved.
func TestInetdByName(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	text, err := os.ReadFile(l.Conf())
	harness.Must(t, err)
	for name, want := range map[string]int{"localhost": 200, "nowhere.invalid": 503} {
		conf := filepath.Join(l.Dir, "etc", name+".conf")
		harness.Must(t, os.WriteFile(conf, []byte(strings.Replace(string(text), l.Node+"(127.0.0.1)", name, 1)), 0o600))
		cmd := l.InetdCommand("-a", "rest_auth/jwt")
		cmd.Args[slices.Index(cmd.Args, l.Conf())] = conf
		cmd.Stdin = strings.NewReader("GET /sched/" + harness.Version + "/jobs HTTP/1.0\r\nX-SCHED-USER-TOKEN: " + l.OwnToken + "\r\n\r\n")
		out, log, _ := harness.RunCommand(t, cmd)
		if a := harness.ParseAnswers(t, out); len(a) != 1 || a[0].Status != want {
			t.Errorf("%s: %q\n%s", name, out, log)
		}
	}
}
