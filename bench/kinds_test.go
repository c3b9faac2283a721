package bench

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"schedrestd/bundled/ctld/process"
	"schedrestd/bundled/demo/site"
	"schedrestd/bundled/demo/thread"
)

var kinds = &comparison{title: "a connection for each ping over a UNIX socket, median", columns: []string{"shared worker", "worker per uid", "worker per connection"}}

// account contains the ids with which a client's process runs.
type account struct{ uid, gid uint32 }

// systemAccounts returns up to ten users of this machine instead of made-up
// uids. The users of a site have names, and looking up a uid without a name
// takes longer.
func systemAccounts(b *testing.B) []account {
	b.Helper()
	text, err := os.ReadFile("/etc/passwd")
	must(b, err)
	var list []account
	for line := range strings.Lines(string(text)) {
		f := strings.Split(line, ":")
		if len(f) < 4 {
			continue
		}
		uid, err1 := strconv.ParseUint(f[2], 10, 32)
		gid, err2 := strconv.ParseUint(f[3], 10, 32)
		if err1 == nil && err2 == nil && uid != 0 && gid != 0 && uid < 65_534 && gid < 65_534 && len(list) < 10 {
			list = append(list, account{uint32(uid), uint32(gid)})
		}
	}
	if len(list) == 0 {
		b.Skip("this machine has no users to connect as")
	}
	return list
}

// BenchmarkKinds measures requests that each use a new connection, for three
// kinds of workers: a shared worker, a worker for each user, and a worker for
// each connection.
func BenchmarkKinds(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("needs root, to connect as several users")
	}
	l := theLab.open(b)
	users := systemAccounts(b)
	firstUser := func(int) account { return users[0] }
	rotateUsers := func(client int) account { return users[client%len(users)] }
	serve := []string{"-u", fmt.Sprint(users[0].uid), "-g", fmt.Sprint(users[0].gid)}
	servers := []server{
		l.startLocal(b, "shared", "", firstUser, serve...),
		l.startLocal(b, "per-uid", "become_user", rotateUsers),
		l.startLocal(b, "per-connection", "worker_per_connection", firstUser, serve...),
	}
	pings := load{request: get("/sched/v0.0.43/ping"), count: 300, local: true}
	samples := make([][]sample, len(servers))
	for _, s := range servers {
		measure(b, s, pings) // warm up
	}
	for round := 0; b.Loop(); round++ {
		for i := range servers {
			index := (round + i) % len(servers)
			samples[index] = append(samples[index], measure(b, servers[index], pings))
		}
	}
	cpu, rate := row{name: "CPU per request", unit: "µs"}, row{name: "requests per second"}
	for _, list := range samples {
		cpu.figures = append(cpu.figures, median(list, func(s sample) float64 { return s.cpu }))
		rate.figures = append(rate.figures, median(list, func(s sample) float64 { return s.rate }))
	}
	kinds.add(cpu)
	kinds.add(rate)
	b.ReportMetric(cpu.figures[1]/cpu.figures[0], "per-uid/shared")
	b.ReportMetric(cpu.figures[2]/cpu.figures[0], "per-connection/shared")
	b.ReportMetric(0, "ns/op")
}

// startLocal starts a gateway that listens on a UNIX socket and supports only
// rest_auth/local. Each client connects as the user that userOf(client)
// returns.
func (l *lab) startLocal(b *testing.B, name, switches string, userOf func(client int) account, args ...string) server {
	b.Helper()
	return l.startLocalBuild(b, l.bin, name, switches, userOf, args...)
}

// startLocalBuild starts a gateway from the programs in the directory bin.
// Otherwise it does the same as startLocal.
func (l *lab) startLocalBuild(b *testing.B, bin, name, switches string, userOf func(client int) account, args ...string) server {
	b.Helper()
	path := filepath.Join(l.Dir, name, "sock")
	must(b, os.Mkdir(filepath.Dir(path), 0o755))
	dial := func(client int) (net.Conn, error) { return thread.DialAs(userOf(client).uid, userOf(client).gid, path) }
	args = append([]string{"-f", l.Conf(), "-a", "rest_auth/local"}, append(args, "unix:"+path)...)
	d := l.start(b, site.Part{
		Program: site.Program{Name: name, Path: filepath.Join(bin, "schedrestd"), Args: args, Log: l.Log(name),
			Env: []string{"SCHEDRESTD_SECURITY=" + switches}},
		Check: func(context.Context) error {
			c, err := dial(0)
			if err != nil {
				return err
			}
			defer c.Close()
			fmt.Fprintf(c, get("/sched/v0.0.43/ping"), "Connection: close\r\n")
			text, err := io.ReadAll(c)
			if err == nil && !strings.HasPrefix(string(text), "HTTP/1.1 200") {
				err = fmt.Errorf("%.200s", text)
			}
			return err
		},
	})
	b.Cleanup(func() { _ = d.Stop() })
	s := newServer(b, d, dial)
	s.hasChangingChildren = true
	return s
}

// familyCPU returns the total CPU time of a process, its running descendants,
// and its children that have exited.
func familyCPU(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(b, err)
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	sum := cpuTime(pid)
	for _, f := range fields[13:15] { // cutime, cstime
		ticks, err := strconv.Atoi(f)
		must(b, err)
		sum += time.Duration(ticks) * 10 * time.Millisecond
	}
	list, err := process.Descendants(pid)
	must(b, err)
	for _, st := range list {
		sum += cpuTime(st.PID)
	}
	return sum
}
