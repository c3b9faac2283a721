package gateway

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/bundled/ctld/process"
	"schedrestd/integration/harness"
	"schedrestd/internal/thread"
	"schedrestd/security"
)

// TestWorkerAttributes checks the process attributes that /proc shows for a
// worker. It does not trust the worker's own report.
func TestWorkerAttributes(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	pids := l.Workers()
	if len(pids) == 0 {
		t.Fatal("no worker")
	}
	for _, pid := range pids {
		status := harness.StatusOf(t, pid)
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

// TestNice checks that the processes that accept connections, the parent and
// schedctld, have a higher priority than other programs if root starts them, and
// that neither the gateway's other processes nor jobs have one. Otherwise
// clients could use the gateway to slow down other programs.
func TestNice(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	l := harness.NewLab(t)
	g := startAsRoot(l, t, nil, "-u", harness.OrdinaryUser(t).Name, "127.0.0.1:0")
	check := func(name string, pid, want int) {
		t.Helper()
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		harness.Must(t, err)
		for _, e := range threads {
			tid, _ := strconv.Atoi(e.Name())
			n, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
			if err == unix.ESRCH {
				continue // the thread has ended
			}
			if harness.Must(t, err); thread.NoNice-n != want {
				t.Errorf("%s: a thread has the nice value %d, want %d", name, thread.NoNice-n, want)
			}
		}
	}
	own, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	harness.Must(t, err)
	held, err := security.EffectiveCapabilities()
	harness.Must(t, err)
	if own != thread.NoNice || !held.Has(unix.CAP_SYS_NICE) {
		t.Skip("the gateway inherits another nice value, or may not change it")
	}
	check("the parent", g.PID(), -10)
	check("schedctld", l.Daemons["schedctld"].PID(), -10)
	id := l.Submit("nice", nil, "X-SCHED-USER-NAME: "+harness.OrdinaryUser(t).Name)
	l.AwaitEnd(id)
	if got := l.Output(t, id); got != "0\n" {
		t.Errorf("a job has the nice value %q, want 0", got)
	}
	list, err := process.Descendants(g.PID())
	harness.Must(t, err)
	checked := 0
	for _, p := range list {
		if fields := strings.Fields(harness.StatusOf(t, p.PID)["Uid"]); len(fields) == 4 && fields[0] != "0" {
			check(harness.StatusOf(t, p.PID)["Name"], p.PID, 0)
			checked++
		}
	}
	if checked == 0 {
		t.Error("the parent has started no process")
	}
}

// TestWorkerKilled kills all workers while 50 clients are connected. These
// connections must end, and the next client must be served. After 20 further
// kills, the gateway must have leaked no slot, and its parent and dispatcher
// must have leaked no descriptor. Package pool tests more kills.
func TestWorkerKilled(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t, func(l *harness.Lab) { l.Restd.Args = append([]string{"--max-connections", "60"}, l.Restd.Args...) })
	descriptors := func() int {
		return harness.Descriptors(t, l.Daemons["schedrestd"].PID()) + harness.Descriptors(t, l.Dispatcher())
	}
	holdConns := func(n int) []net.Conn {
		var conns []net.Conn
		for range n {
			conns = append(conns, l.HoldConn())
		}
		return conns
	}
	newClient := func() *http.Client { return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} }
	checkServed := func() {
		t.Helper()
		a, err := l.TryRequest(newClient(), "GET", "/sched/v0.0.43/ping", "")
		harness.Must(t, err)
		a.Want(t, 200)
	}

	conns := holdConns(50)
	for _, pid := range l.Workers() {
		harness.Must(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	for i, c := range conns {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("connection %d received data from a killed worker", i)
		}
		c.Close()
	}
	checkServed()

	before := descriptors()
	for range 20 {
		c := l.HoldConn()
		pids := l.Workers()
		if len(pids) == 0 {
			t.Fatal("no worker")
		}
		harness.Must(t, syscall.Kill(pids[0], syscall.SIGKILL))
		// Wait until the worker has exited. Otherwise the next connection might
		// still be handed to this worker, and would then be lost, too.
		harness.Eventually(t, "the worker has exited", func() bool {
			st, err := process.ReadStat(pids[0])
			return err != nil || st.State == 'Z'
		})
		checkServed()
		c.Close()
	}
	harness.Eventually(t, "parent and dispatcher have no more descriptors than before", func() bool { return descriptors() <= before })
	conns = holdConns(55) // needs 55 of the 60 slots, so it fails if each kill leaks a slot
	for _, c := range conns {
		c.Close()
	}
}
