package integration

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"schedrestd/ctld/process"
)

// workers are the gateway's workers.
func (l *lab) workers() []int {
	l.t.Helper()
	return workersOf(l.t, l.daemons["schedrestd"].PID())
}

// workersOf are the workers of the gateway whose parent is pid.
func workersOf(t *testing.T, pid int) []int {
	t.Helper()
	list, err := process.Descendants(pid)
	must(t, err)
	var pids []int
	for _, st := range list {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", st.PID))
		if err == nil && strings.HasPrefix(string(name), "schedrestd-work") { // 15 letters are kept
			pids = append(pids, st.PID)
		}
	}
	return pids
}

// What /proc says of a worker is what it is, whatever it says of itself.
func TestWorkerPosture(t *testing.T) {
	l := newLab(t)
	pids := l.workers()
	if len(pids) == 0 {
		t.Fatal("no worker")
	}
	for _, pid := range pids {
		status := statusOf(t, pid)
		if status["NoNewPrivs"] != "1" {
			t.Errorf("NoNewPrivs %q", status["NoNewPrivs"])
		}
		if os.Geteuid() != 0 {
			continue
		}
		for _, ids := range []string{"Uid", "Gid"} {
			for _, id := range strings.Fields(status[ids]) {
				if id == "0" {
					t.Errorf("%s %s", ids, status[ids])
				}
			}
		}
		if status["Groups"] != "" || strings.Trim(status["CapEff"], "0") != "" || strings.Trim(status["CapPrm"], "0") != "" {
			t.Errorf("Groups %q, CapEff %s, CapPrm %s", status["Groups"], status["CapEff"], status["CapPrm"])
		}
	}
}

// statusOf is /proc/PID/status.
func statusOf(t *testing.T, pid int) map[string]string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	fields := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimSpace(value)
	}
	return fields
}

// 50 clients hold connections when their worker is killed: all of them see it, and whoever comes
// next is served. The parent keeps nothing of the dead, over 200 deaths: no descriptor, no slot.
func TestWorkerKilled(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(l *lab) { l.restd.Args = append([]string{"--max-connections", "60"}, l.restd.Args...) })
	parent := l.daemons["schedrestd"].PID()
	held := func(n int) []net.Conn {
		var conns []net.Conn
		for range n {
			conns = append(conns, l.hold())
		}
		return conns
	}
	fresh := func() *http.Client { return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} }
	served := func() {
		t.Helper()
		a, err := l.try(fresh(), "GET", "/sched/v0.0.43/ping", "")
		must(t, err)
		a.want(t, 200)
	}

	conns := held(50)
	for _, pid := range l.workers() {
		must(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	for i, c := range conns {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("connection %d got something from a dead worker", i)
		}
		c.Close()
	}
	served()

	deaths := 200
	if testing.Short() {
		deaths = 20
	}
	before := descriptors(t, parent)
	for range deaths {
		c := l.hold()
		pids := l.workers()
		if len(pids) == 0 {
			t.Fatal("no worker")
		}
		must(t, syscall.Kill(pids[0], syscall.SIGKILL))
		// A connection that is handed to a worker in its last moments is lost with it.
		eventually(t, "the worker is dead", func() bool {
			st, err := process.ReadStat(pids[0])
			return err != nil || st.State == 'Z'
		})
		served()
		c.Close()
	}
	eventually(t, "the parent's descriptors are no more than before", func() bool { return descriptors(t, parent) <= before })
	conns = held(55) // of 60 slots: none was lost with a worker
	for _, c := range conns {
		c.Close()
	}
}

// hold opens a connection, has one request answered on it and keeps it.
func (l *lab) hold() net.Conn {
	l.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(l.url, "http://"))
	must(l.t, err)
	fmt.Fprintf(c, "GET /sched/v0.0.43/ping HTTP/1.1\r\nHost: lab\r\nX-SCHED-USER-TOKEN: %s\r\n\r\n", l.userToken)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	must(l.t, err)
	if resp.StatusCode != 200 {
		l.t.Fatalf("status %s", resp.Status)
	}
	return c
}

// descriptors is how many the process has open; 0 when it hides them, as the parent does from all but root.
func descriptors(t *testing.T, pid int) int {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if os.Geteuid() != 0 && errors.Is(err, fs.ErrPermission) {
		return 0
	}
	must(t, err)
	return len(list)
}
