package gateway

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"schedrestd/integration/harness"
)

// withDaemonTLS is an option for daemons that use TLS (TLSType=tls/s2n). The
// gateway accepts only tokens, so that it uses no socket of a daemon.
func withDaemonTLS(l *harness.Lab) {
	l.TLS = true
	harness.WithOptions([]string{"-a", "rest_auth/jwt"})(l)
}

// TestDaemonTLS checks requests to daemons that use TLS: to the controller, to
// the accounting daemon, and from the controller to the accounting daemon.
func TestDaemonTLS(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t, withDaemonTLS)
	ping := l.Request("GET", "/sched/"+harness.Version+"/ping", "").Want(t, http.StatusOK)
	if ping.Get("pings", 0, "responding") != true {
		t.Errorf("ping: %s", ping.Text)
	}
	id := l.Submit("echo done", nil)
	if state := l.AwaitEnd(id).State(); state != "COMPLETED" {
		t.Errorf("job %d: %s", id, state)
	}
	harness.Eventually(t, "the accounting daemon has the job", func() bool {
		a := l.Request("GET", fmt.Sprintf("/scheddb/%s/job/%d", harness.Version, id), "")
		return a.Status == http.StatusOK && len(a.List("jobs")) == 1
	})
	l.Request("POST", "/scheddb/"+harness.Version+"/accounts", `{"accounts":[{"name":"tls","description":"d","organization":"o"}]}`).Want(t, http.StatusOK)
	l.Request("GET", "/scheddb/"+harness.Version+"/account/tls", "").Want(t, http.StatusOK)
	if a := l.Request("GET", "/metrics/cluster", ""); a.Status != http.StatusOK || !strings.Contains(a.Text, "slurm_nodes 1") {
		t.Errorf("metrics: %d %s", a.Status, a.Text)
	}
}

// rewrite writes a changed copy of a lab's configuration, beside it.
func rewrite(t *testing.T, l *harness.Lab, change func(string) string) (path string) {
	t.Helper()
	text, err := os.ReadFile(l.Conf())
	harness.Must(t, err)
	path = filepath.Join(l.Dir, "etc", fmt.Sprintf("copy%d.conf", harness.FreePort(t)))
	harness.Must(t, os.WriteFile(path, []byte(change(string(text))), 0o600))
	return path
}

// TestDaemonTLSPrograms checks the other ways to the daemons: schedctl without a
// gateway, inetd mode, and --check.
func TestDaemonTLSPrograms(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t, withDaemonTLS)
	withoutSocket := rewrite(t, l, func(text string) string { return regexp.MustCompile(`(?m)^AuthInfo=.*\n`).ReplaceAllString(text, "") })
	run := func(cmd *exec.Cmd, env ...string) (string, string, int) {
		t.Helper()
		cmd.Env = append(cmd.Env, append(env, "PATH="+os.Getenv("PATH"))...)
		return harness.RunCommand(t, cmd)
	}
	schedctl := func(env ...string) (string, string, int) {
		return run(exec.Command(filepath.Join(harness.Bin, "schedctl"), "-f", withoutSocket, "nodes"), append(env, "SCHED_JWT="+l.OwnToken)...)
	}
	if out, log, status := schedctl("SCHEDRESTD_TLS_NAMES=check"); status != 0 || !strings.Contains(out, l.Node) {
		t.Errorf("schedctl: status %d, %q %q", status, out, log)
	}
	inetd := l.InetdCommand()
	inetd.Args = append(inetd.Args, "-a", "rest_auth/jwt")
	inetd.Stdin = strings.NewReader("GET /sched/" + harness.Version + "/nodes HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-SCHED-USER-TOKEN: " + l.OwnToken + "\r\n\r\n")
	out, log, _ := run(inetd)
	if answers := harness.ParseAnswers(t, out); len(answers) != 1 || answers[0].Status != http.StatusOK || len(answers[0].List("nodes")) != 1 {
		t.Errorf("inetd: %q %s", out, log)
	}
	out, log, status := run(exec.Command(filepath.Join(harness.Bin, "schedrestd"), "--check", "-f", l.Conf(), "-u", "nobody", "127.0.0.1:6820"), "SCHED_JWT=daemon")
	if os.Geteuid() == 0 && (status != 0 || !strings.Contains(out, `reached with TLS; CA "CN=CA of `)) {
		t.Errorf("--check: status %d, %q %q", status, out, log)
	}
	harness.Must(t, os.WriteFile(filepath.Join(l.Dir, "etc", "ca_cert.pem"), harness.NewIdentity(t, nil).CertPEM, 0o600))
	if out, log, status := schedctl(); status == 0 || !strings.Contains(log, "is not from the cluster's CA (ca_cert_file)") {
		t.Errorf("schedctl with another CA: status %d, %q %q", status, out, log)
	}
}

// TestDaemonTLSFailover checks that a controller whose handshake does not end
// does not keep the gateway from the backup. A gateway with many requests, which
// gets connections in advance, must not fail either.
func TestDaemonTLSFailover(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t, withDaemonTLS)
	stalling, err := net.Listen("tcp", fmt.Sprintf("127.0.0.2:%d", l.Controller)) // accepts nothing
	harness.Must(t, err)
	defer stalling.Close()
	conf := rewrite(t, l, func(text string) string {
		return strings.Replace(text, "SchedctldHost=", "SchedctldHost=stalling(127.0.0.2)\nSchedctldHost=", 1) + "MessageTimeout=4\n"
	})
	address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	g := l.StartGateway(t, nil, append(append([]string{"-f", conf}, l.Restd.Args[2:len(l.Restd.Args)-1]...), address)...)
	l.URL = "http://" + address
	for range 300 {
		if a := l.Request("GET", "/sched/"+harness.Version+"/partitions", ""); a.Status != http.StatusOK {
			t.Fatalf("%d %s", a.Status, a.Text)
		}
	}
	if strings.Contains(g.Logged(), "level=ERROR") {
		t.Error(g.Logged())
	}
}

// TestDaemonTLSReload checks that a gateway reads the CA again after SIGHUP, and
// keeps the old one if the new file can't be used.
func TestDaemonTLSReload(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t, withDaemonTLS)
	file := filepath.Join(l.Dir, "etc", "ca_cert.pem")
	right, err := os.ReadFile(file)
	harness.Must(t, err)
	wrong := harness.NewIdentity(t, nil).CertPEM
	harness.ReplaceFile(t, file, wrong, 0o644)
	address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	g := l.StartGateway(t, nil, "-a", "rest_auth/jwt", address)
	l.URL = "http://" + address
	client := harness.NewClient(func() (net.Conn, error) { return net.Dial("tcp", address) }) // an old connection stays with its old worker
	status := func() int {
		a, err := l.TryRequest(client, "GET", "/sched/"+harness.Version+"/nodes", "")
		harness.Must(t, err)
		return a.Status
	}
	if got := status(); got != http.StatusServiceUnavailable {
		t.Fatalf("status %d with another CA", got)
	}
	for i, step := range []struct {
		text   []byte
		logged string
		status int
	}{
		{right, "configuration reloaded", http.StatusOK},
		{[]byte("no certificate\n"), "contains no certificate in PEM", http.StatusOK},
		{wrong, "configuration reloaded", http.StatusServiceUnavailable},
	} {
		harness.ReplaceFile(t, file, step.text, 0o644)
		before := strings.Count(g.Logged(), step.logged)
		harness.Must(t, syscall.Kill(g.PID(), syscall.SIGHUP))
		g.Eventually(t, step.logged, func() bool { return strings.Count(g.Logged(), step.logged) > before })
		if got := status(); got != step.status {
			t.Errorf("step %d: status %d, want %d", i, got, step.status)
		}
	}
}

// TestDaemonTLSMismatch checks the errors where only one side uses TLS, and
// where the gateway has another CA.
func TestDaemonTLSMismatch(t *testing.T) {
	t.Parallel()
	plain, secure := harness.NewDaemons(t), harness.NewDaemons(t, withDaemonTLS)
	same := func(text string) string { return text }
	withCA := func(text string) string {
		return text + "TLSType=tls/s2n\nTLSParameters=ca_cert_file=" + filepath.Join(secure.Dir, "etc", "ca_cert.pem") + "\n"
	}
	withoutTLS := func(text string) string { return strings.ReplaceAll(text, "TLSType=tls/s2n\n", "") }
	otherCA := filepath.Join(secure.Dir, "etc", "other.pem")
	harness.Must(t, os.WriteFile(otherCA, harness.NewIdentity(t, nil).CertPEM, 0o600))
	withOtherCA := func(text string) string { return text + "TLSParameters=ca_cert_file=" + otherCA + "\n" }
	tests := []struct {
		name    string
		lab     *harness.Lab
		change  func(string) string
		env     string
		status  int
		problem string // pattern for the errors of both daemons
	}{
		{name: "both with TLS", lab: secure, change: same, status: 200},
		{name: "names are compared", lab: secure, change: same, env: "SCHEDRESTD_TLS_NAMES=check", status: 200},
		{name: "only the gateway has TLS", lab: plain, change: withCA, status: 503, problem: `closed the connection in the TLS handshake|does not speak TLS`},
		{name: "only the daemons have TLS", lab: secure, change: withoutTLS, status: 503, problem: `requires TLS`},
		{name: "another CA", lab: secure, change: withOtherCA, status: 503, problem: `is not from the cluster's CA`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
			var env []string
			if tt.env != "" {
				env = append(env, tt.env)
			}
			args := append([]string{"-f", rewrite(t, tt.lab, tt.change)}, tt.lab.Restd.Args[2:len(tt.lab.Restd.Args)-1]...)
			if tt.lab == plain {
				args = append(args, "-a", "rest_auth/jwt")
			}
			tt.lab.StartGateway(t, env, append(args, address)...)
			for _, path := range []string{"/sched/" + harness.Version + "/jobs", "/scheddb/" + harness.Version + "/accounts"} {
				l := *tt.lab
				l.URL = "http://" + address
				a := l.Request("GET", path, "").Want(t, tt.status)
				if tt.problem == "" {
					continue
				}
				if text := a.Text; !regexp.MustCompile(tt.problem).MatchString(text) || !strings.Contains(text, "TLSType") && !strings.Contains(text, "ca_cert_file") {
					t.Errorf("%s: %s", path, text)
				}
			}
		})
	}
}
