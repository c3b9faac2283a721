package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"schedrestd/bundled/demo/site"
)

// slurmVersion is an API version that this gateway serves. The gateways of
// Slurm 24.11 and 26.05 also serve it.
const slurmVersion = "/slurm/v0.0.42"

// heldJob is the request body for submitting a job that waits until a user
// releases it.
const heldJob = `{"job":{"name":"held","hold":true,"script":"#!/bin/sh\ntrue\n","current_working_directory":"/tmp",` +
	`"time_limit":{"set":true,"number":1},"environment":["PATH=/usr/bin:/bin"]}}`

// slurmLab is a real Slurm cluster that is already running. A file with shell
// variables describes the cluster; the environment variable LAB_ENV names this
// file. The benchmarks start both gateways on this machine and stop them at the
// end. Submitted jobs stay in the cluster.
type slurmLab struct {
	root     string // root directory of the cluster, laid out like the file system of a separate machine
	conf     string // slurm.conf
	uid, gid string // of Slurm's gateway
	token    string
	dir      string // logs
	daemons  []*site.Daemon
	servers  []server // both gateways as servers
}

var slurm slurmLab

// open reads the description of the cluster on the first call.
func (l *slurmLab) open(b *testing.B) *slurmLab {
	b.Helper()
	path := os.Getenv("LAB_ENV")
	if path == "" {
		b.Skip("LAB_ENV does not name the lab.env of a running Slurm")
	}
	if os.Geteuid() != 0 {
		b.Skip("needs root, to start Slurm's gateway where Slurm is installed")
	}
	if l.root != "" {
		return l
	}
	const script = `. "$0" && printf '%s\n' "$LAB_SLURM_VERSION" "$LAB_SLURM_CONF" \
		"$(id -u "$LAB_SLURMRESTD_USER")" "$(id -g "$LAB_SLURMRESTD_USER")" "$($LAB_TOKEN_CMD)" "$LAB_ROOT"`
	out, err := exec.Command("sh", "-c", script, path).Output()
	must(b, err)
	f := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(f) != 6 {
		b.Fatalf("%s lacks variables: %q", path, f)
	}
	if strings.HasPrefix(f[0], "22.05") {
		b.Skip("Slurm 22.05's gateway and this one have no version in common")
	}
	l.dir, err = os.MkdirTemp("", "bench-slurm-")
	must(b, err)
	l.conf, l.uid, l.gid, l.token, l.root = f[1], f[2], f[3], strings.TrimPrefix(f[4], "SLURM_JWT="), f[5]
	b.Logf("Slurm %s", f[0])
	return l
}

// close stops both gateways that answer the short benchmarks.
func (l *slurmLab) close() {
	for _, d := range l.daemons {
		_ = d.Stop()
	}
	os.RemoveAll(l.dir)
}

// pair returns both gateways.
func (l *slurmLab) pair(b *testing.B) []server {
	b.Helper()
	if l.daemons == nil {
		for _, p := range []site.Program{l.schedrestdProgram(b), l.slurmrestdProgram()} {
			d, s := l.start(b, p)
			l.daemons, l.servers = append(l.daemons, d), append(l.servers, s)
		}
	}
	return l.servers
}

// startSchedrestd and startSlurmrestd start a gateway for one benchmark only.
func (l *slurmLab) startSchedrestd(b *testing.B) server {
	return l.startTemporary(b, l.schedrestdProgram(b))
}
func (l *slurmLab) startSlurmrestd(b *testing.B) server {
	return l.startTemporary(b, l.slurmrestdProgram())
}

func (l *slurmLab) startTemporary(b *testing.B, p site.Program) server {
	b.Helper()
	d, s := l.start(b, p)
	b.Cleanup(func() { _ = d.Stop() })
	return s
}

// schedrestdProgram returns this gateway with the settings of a typical site.
func (l *slurmLab) schedrestdProgram(b *testing.B) site.Program {
	b.Helper()
	path, err := filepath.Abs("../bin/schedrestd")
	must(b, err)
	return site.Program{Name: "schedrestd", Path: path, Env: []string{"SLURM_JWT=daemon"},
		Args: []string{"-f", l.conf, "-u", site.Nobody, "-g", site.NobodyGroup()}}
}

// slurmrestdProgram returns slurmrestd with its defaults, except that it
// accepts only tokens (rest_auth/jwt). When the benchmarks exit, the
// parent-death signal kills slurmrestd. A change of user clears this signal, so
// setpriv changes the user, sets the signal, and then starts slurmrestd.
func (l *slurmLab) slurmrestdProgram() site.Program {
	return site.Program{Name: "slurmrestd", Path: "/usr/sbin/chroot", Env: []string{"SLURM_JWT=daemon"}, Args: []string{l.root,
		"setpriv", "--reuid=" + l.uid, "--regid=" + l.gid, "--clear-groups", "--pdeathsig=KILL", "slurmrestd", "-a", "rest_auth/jwt"}}
}

// start starts a gateway on a free port.
func (l *slurmLab) start(b *testing.B, p site.Program) (*site.Daemon, server) {
	b.Helper()
	ports, err := site.FreePorts(1)
	must(b, err)
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	p.Log, p.Args = filepath.Join(l.dir, p.Name), append(p.Args, address)
	d := theLab.start(b, site.Part{Program: p, Address: "http://" + address, Check: func(ctx context.Context) error {
		_, err := l.fetch(ctx, tcpDialer(address), "/ping")
		return err
	}})
	return d, newServer(b, d, tcpDialer(address))
}

// fetch sends a request to the API and returns the body of the answer.
func (l *slurmLab) fetch(ctx context.Context, dial dialer, path string) ([]byte, error) {
	return l.fetchPath(ctx, dial, slurmVersion+path)
}

// fetchPath returns the body of an answer.
func (l *slurmLab) fetchPath(ctx context.Context, dial dialer, path string) ([]byte, error) {
	return fetch(ctx, dial, path, "X-SLURM-USER-TOKEN", l.token)
}

// fetch sends one request on a new connection and returns the body of the
// answer. The header argument is the name of the header that contains the
// token.
func fetch(ctx context.Context, dial dialer, path, header, token string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://bench"+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set(header, token)
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return dial(0) },
	}}
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.300s", resp.Status, text)
	}
	return text, err
}

// peak returns the peak memory, in MB, of the largest process of s. For this
// gateway that is a worker. Slurm's gateway has only one process.
func (s server) peak(b *testing.B) float64 {
	b.Helper()
	var largest float64
	for _, pid := range s.pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		must(b, err)
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); f[0] == "VmHWM:" {
				kb, err := strconv.Atoi(f[1])
				must(b, err)
				largest = max(largest, float64(kb)/1024)
			}
		}
	}
	return largest
}

// fillJobs submits held jobs until there are at least n.
func (l *slurmLab) fillJobs(b *testing.B, n int) {
	b.Helper()
	s := l.pair(b)[0]
	if missing := n - l.countJobs(b, s); missing > 0 {
		b.Logf("submitting %d jobs first", missing)
		slurmLoad{path: "/job/submit", body: heldJob, keepAlive: true, count: missing}.run(b, l, s)
	}
	if have := l.countJobs(b, s); have < n {
		b.Fatalf("the controller lists %d jobs after the missing ones of %d were submitted", have, n)
	}
}

// countJobs returns the number of jobs that the controller lists.
func (l *slurmLab) countJobs(b *testing.B, s server) int {
	b.Helper()
	text, err := l.fetch(context.Background(), s.dial, "/jobs/state")
	must(b, err)
	var states struct{ Jobs []json.RawMessage }
	must(b, json.Unmarshal(text, &states))
	return len(states.Jobs)
}
