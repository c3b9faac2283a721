// Package slurm tests the gateway with a real Slurm, side by side with Slurm's
// own gateway. The script "cluster" installs Slurm from Debian's packages, and
// runs the cluster in namespaces, as a machine with its own root directory. The
// gateway runs in this machine. The tests run on the host, and connect to the
// UNIX sockets in the machine's root directory.
//
// "make integration-slurm" runs these tests. SLURM_RELEASE selects the release.
// If it is not set, all tests are skipped. SLURM_REQUIRED=1 turns skips into
// failures. With SLURM_KEEP=1 the machine keeps running until "cluster RELEASE
// down" stops it. With SLURM_TLS=1 the gateway speaks TLS with a server in front
// of the daemons, and with SLURM_TLS=s2n with the daemons themselves.
package slurm

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
	"schedrestd/integration/pod"
	"schedrestd/internal/programtest"
)

// machine is the machine with the cluster.
type machine struct {
	release string // such as 24.11
	root    string // path of the machine's root directory on the host
	first   string // process id of its first process
	token   string // token of alice
	admin   string // token of the user slurm, who may see everything
	wckey   string // number of a workload key that populate has created

	used    bool // a test has submitted jobs
	changed bool // a test has changed more than jobs
}

var (
	cluster    machine
	skipReason string // reason why there is no cluster
)

func TestMain(m *testing.M) {
	if forward, ok := forwarders[filepath.Base(os.Args[0])]; ok {
		fmt.Println(forward())
		os.Exit(1)
	}
	pod.Main()
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	err := cluster.open(os.Getenv("SLURM_RELEASE"))
	defer cluster.close()
	defer harness.StopBrowser()
	if absent, ok := errors.AsType[harness.Missing](err); ok && os.Getenv("SLURM_REQUIRED") == "" {
		skipReason, err = absent.Error(), nil
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

var (
	must       = harness.Must
	eventually = harness.Eventually
)

// useCluster returns the cluster, or skips the test if there is none. The
// cluster may contain jobs from earlier tests. If an earlier test changed
// anything else, useCluster restarts the cluster in its original state, so that
// the tests do not depend on their order.
func useCluster(t *testing.T) *machine {
	t.Helper()
	return cluster.ready(t, cluster.changed)
}

// freshCluster returns the cluster as it was installed. It is for tests that
// compare lists, or that change nodes, records, settings or daemons.
func freshCluster(t *testing.T) *machine {
	t.Helper()
	m := cluster.ready(t, cluster.changed || cluster.used)
	m.changed = true
	return m
}

// notForThisRun skips a test that has nothing to check in this run, although the machine
// lacks nothing. tools/lint/skipped lists it, and .ci/run does not count it as skipped.
func notForThisRun(t *testing.T, reason string) {
	t.Helper()
	t.Skip("not for this run: " + reason)
}

func (m *machine) ready(t *testing.T, restart bool) *machine {
	t.Helper()
	if skipReason != "" {
		t.Skip(skipReason)
	}
	if restart {
		must(t, m.up())
	}
	m.used = true
	return m
}

func (m *machine) open(release string) error {
	if release == "" {
		return harness.Missing("SLURM_RELEASE names no release of Slurm to test with")
	}
	if os.Geteuid() != 0 {
		return harness.Missing("needs root, to make a machine for Slurm and to be several users")
	}
	for _, program := range []string{"debootstrap", "unshare", "nsenter", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			return harness.Missing(program + " is not installed")
		}
	}
	if out, err := exec.Command("unshare", "--mount", "--pid", "--net", "--uts", "--fork", "true").CombinedOutput(); err != nil {
		return harness.Missing(fmt.Sprintf("namespaces can't be made here: %s", bytes.TrimSpace(out)))
	}
	if out, err := exec.Command("make", "-s", "-C", "../..", "build").CombinedOutput(); err != nil {
		return fmt.Errorf("make build: %w\n%s", err, out)
	}
	m.release = release
	if err := m.up(); err != nil {
		return err
	}
	return m.install("schedrestd*")
}

// up starts the machine again, without jobs and records.
func (m *machine) up() error {
	m.used, m.changed, m.wckey = false, false, ""
	out, err := m.script("up")
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), "="); key {
		case "root":
			m.root = value
		case "first":
			m.first = value
		}
	}
	if m.token, err = m.createToken("alice"); err == nil && throughTLS {
		err = m.secure()
	}
	if err != nil {
		return err
	}
	m.admin, err = m.createToken("slurm")
	return err
}

// close stops the machine, unless SLURM_KEEP is set.
func (m *machine) close() {
	if m.release != "" && os.Getenv("SLURM_KEEP") == "" {
		m.script("down")
	}
}

// script runs "cluster".
func (m *machine) script(args ...string) (string, error) {
	return harness.RunScript("./cluster", append([]string{m.release}, args...)...)
}

// install copies programs into the machine. Each element of patterns is the
// name of a program, or a pattern that matches names of programs.
func (m *machine) install(patterns ...string) error {
	dir := filepath.Join(m.root, "opt/gateway")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, pattern := range patterns {
		programs, err := filepath.Glob("../../bin/" + pattern)
		if err == nil && len(programs) == 0 {
			err = fmt.Errorf("no program bin/%s", pattern)
		}
		if err != nil {
			return err
		}
		for _, path := range programs {
			file := filepath.Join(dir, filepath.Base(path))
			os.Remove(file)
			if err := programtest.Copy(path, file, 0o755); err != nil {
				return err
			}
		}
	}
	return nil
}

// command returns a command that runs in the machine as one of its users, in a
// directory to which all users may write.
func (m *machine) command(ctx context.Context, user string, args ...string) *exec.Cmd {
	enter := []string{"--target", m.first, "--mount", "--pid", "--net", "--uts", "--ipc", "--root", "--wd", "--",
		"env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=/tmp", "USER=" + user}
	if withS2N {
		enter = append(enter, "SCHEDRESTD_CONF_CA=/etc/slurm/ca_cert.pem") // for gateways that fetch their configuration
	}
	enter = append(enter, "setpriv", "--reuid="+user, "--regid="+user, "--init-groups", "env", "-C", "/tmp")
	cmd := exec.CommandContext(ctx, "nsenter", append(enter, args...)...)
	cmd.WaitDelay = 10 * time.Second // children of the command may hold its output open
	return cmd
}

// try runs a command and returns its output.
func (m *machine) try(user string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := m.command(ctx, user, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s runs %v: %w\n%s", user, args, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// run runs a command and returns its output. The test fails if the command
// fails.
func (m *machine) run(t *testing.T, user string, args ...string) string {
	t.Helper()
	out, err := m.try(user, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (m *machine) createToken(user string) (string, error) {
	out, err := m.try("root", "scontrol", "token", "username="+user, "lifespan=86400")
	return strings.TrimPrefix(out, "SLURM_JWT="), err
}

// daemon is a process in the machine.
type daemon struct {
	m   *machine
	cmd *exec.Cmd
	pid string // process id in the machine
	log string // path of its log

	ended chan struct{}
}

// start starts a daemon with the environment variables in env. It returns when
// the daemon accepts connections on socket.
func (m *machine) start(t *testing.T, name, socket string, env []string, args ...string) *daemon {
	t.Helper()
	os.Remove(filepath.Join(m.root, socket))
	d := m.launch(t, name, env, args)
	eventually(t, name+" answers", func() bool {
		d.failIfEnded(t)
		nc, err := net.Dial("unix", filepath.Join(m.root, socket))
		if err != nil {
			return false
		}
		nc.Close()
		return true
	})
	return d
}

// launch starts a daemon, and passes it sockets as a service manager does.
func (m *machine) launch(t *testing.T, name string, env, args []string, sockets ...*os.File) *daemon {
	t.Helper()
	file := filepath.Join(m.root, "run", name+".pid")
	os.Remove(file)
	passed := ""
	if len(sockets) > 0 {
		passed = fmt.Sprint("LISTEN_PID=$$ LISTEN_FDS=", len(sockets))
	}
	shell := []string{"sh", "-c", `echo $$ >/run/` + name + `.pid; exec env ` + passed + ` "$@"`, name}
	d := &daemon{m: m, log: filepath.Join(m.root, "var/log/slurm", name+".log")}
	log, err := os.Create(d.log)
	must(t, err)
	defer log.Close()
	d.cmd = m.command(context.Background(), "root", append(append(shell, env...), args...)...)
	d.cmd.Stdout, d.cmd.Stderr, d.cmd.ExtraFiles = log, log, sockets
	must(t, d.cmd.Start())
	d.ended = make(chan struct{})
	go func() {
		d.cmd.Wait()
		close(d.ended)
	}()
	t.Cleanup(func() { d.stop(t) })
	eventually(t, name+" has started", func() bool {
		text, _ := os.ReadFile(file)
		if d.pid = strings.TrimSpace(string(text)); d.pid == "" {
			d.failIfEnded(t)
		}
		return d.pid != ""
	})
	return d
}

// failIfEnded ends the test if the daemon has exited: what a test waits for then can't
// happen any more.
func (d *daemon) failIfEnded(t *testing.T) {
	t.Helper()
	select {
	case <-d.ended:
		t.Fatalf("%v has exited", d.cmd.Args)
	default:
	}
}

func (d *daemon) stop(t *testing.T) {
	if d.pid != "" {
		d.m.try("root", "kill", "-TERM", d.pid)
	}
	select {
	case <-d.ended:
	case <-time.After(time.Minute):
		t.Errorf("%v did not exit", d.cmd.Args)
		d.m.try("root", "kill", "-KILL", d.pid)
	}
	if text, _ := os.ReadFile(d.log); t.Failed() {
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		t.Logf("its last log lines:\n%s", strings.Join(lines[max(0, len(lines)-5):], "\n"))
	}
}

const (
	gatewaySocket   = "/run/gateway.sock"
	referenceSocket = "/run/rest/rest.sock"
)

// gateway starts our gateway.
func (m *machine) gateway(t *testing.T, args ...string) *daemon {
	t.Helper()
	args = append([]string{"/opt/gateway/schedrestd", "-v", "-f", m.conf()}, args...)
	return m.start(t, "gateway", gatewaySocket, []string{"SLURM_JWT=daemon"}, append(args, "unix:"+gatewaySocket)...)
}

// reference starts Slurm's gateway.
func (m *machine) reference(t *testing.T) *daemon {
	t.Helper()
	return m.start(t, "reference", referenceSocket, []string{"SLURM_JWT=daemon"},
		"setpriv", "--reuid=rest", "--regid=rest", "--init-groups", "slurmrestd", "-a", "rest_auth/jwt", "unix:"+referenceSocket)
}

// client returns a client for a socket of the machine.
func (m *machine) client(socket string) *http.Client {
	var d net.Dialer
	return &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, "unix", filepath.Join(m.root, socket))
		},
	}}
}

// answer is the answer to a request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// sendRequest sends a request. Each element of headers is "Name: value".
func sendRequest(c *http.Client, method, path, body string, headers ...string) (answer, error) {
	r, err := http.NewRequest(method, "http://gateway"+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	w, err := c.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	return answer{w.StatusCode, w.Header, text}, err
}
