package privsep

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"schedrestd/gateway/dispatcher"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"schedrestd/bundled/demo/thread"
	"schedrestd/integration/privsep/parent"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	programs "schedrestd/privsep/program"
)

// reloadWriter returns a function that writes the file from which the parents
// in this test reread their configuration.
func reloadWriter(t *testing.T) func(ipc.Setup) {
	t.Helper()
	write := reloadSecretsWriter(t)
	return func(s ipc.Setup) { t.Helper(); write(s, ipc.Secrets{}) }
}

// reloadSecretsWriter works like reloadWriter, but the returned function also
// sets the secrets in the file.
func reloadSecretsWriter(t *testing.T) func(ipc.Setup, ipc.Secrets) {
	t.Helper()
	path := reloadFile(t)
	t.Cleanup(func() { os.Remove(path) }) // the test may run again
	return func(s ipc.Setup, secrets ipc.Secrets) {
		t.Helper()
		if s.Settings == nil {
			s.Settings = packed(work.Setup{}).Settings
		}
		text, err := json.Marshal(parent.Reread{Setup: s, Secrets: secrets})
		if err == nil {
			err = os.WriteFile(path, text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// cluster returns the cluster name in the setup of the worker that serves c.
func cluster(t *testing.T, c net.Conn) string {
	t.Helper()
	status, body, err := ask(c, "/setup")
	var s work.Setup
	if err == nil {
		err = json.Unmarshal([]byte(body), &s)
	}
	if err != nil || status != http.StatusOK {
		t.Fatalf("%d %s %v", status, body, err)
	}
	return s.Cluster
}

// TestReload checks that after a SIGHUP, new connections are served with the
// new configuration, and existing connections are kept. A request in progress
// must get its answer. The next request on an idle connection must get an
// answer that says that the connection will be closed.
func TestReload(t *testing.T) {
	t.Parallel()
	write := reloadWriter(t)
	write(packed(work.Setup{Cluster: "two"}))
	g := serve(t, plainUser(t), testConfig{Setup: packed(work.Setup{Cluster: "one"})})
	resting := g.dial(t, "")
	if got := cluster(t, resting); got != "one" {
		t.Fatalf("cluster %q", got)
	}
	flight := g.dial(t, "GET /wait?ms=1500 HTTP/1.1\r\nHost: x\r\n\r\n")
	g.await("worker: a request waits", nil)
	old := g.workerPID()

	g.cmd.Process.Signal(syscall.SIGHUP)
	g.await("configuration reloaded", nil)
	if got := cluster(t, g.dial(t, "")); got != "two" {
		t.Errorf("a new connection: cluster %q", got)
	}
	if status, body, err := answer(flight); status != http.StatusOK || body != "waited" {
		t.Errorf("the request in flight: %d %s %v", status, body, err)
	}
	resting.Write([]byte("GET /setup HTTP/1.1\r\nHost: x\r\n\r\n"))
	received := readAll(t, resting)
	if !strings.HasPrefix(received, "HTTP/1.1 200 ") || !strings.Contains(received, "\r\nConnection: close\r\n") || !strings.Contains(received, `"Cluster":"one"`) {
		t.Errorf("the one that rested: %q", received)
	}
	flight.Close()
	g.await("worker exited", func(r map[string]any) bool { return r["pid"] == float64(old) })
	if g.cmd.Process.Signal(syscall.SIGTERM); g.wait() != 0 {
		t.Error("the end is not a clean one")
	}
}

// TestReloadUnderLoad checks that no request is lost, however often the
// configuration is reread.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	write := reloadWriter(t)
	write(packed(work.Setup{Cluster: "two"}))
	g := serve(t, plainUser(t), testConfig{Setup: packed(work.Setup{Cluster: "one"})})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			c := client("tcp", g.addr, i%2 == 0)
			for {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Millisecond):
				}
				if _, err := get(c, "/pid"); err != nil {
					t.Errorf("while reloading: %v", err)
					return
				}
			}
		})
	}
	for n := range 10 {
		g.cmd.Process.Signal(syscall.SIGHUP)
		g.awaitMany("configuration reloaded", n+1)
	}
	close(stop)
	wg.Wait()
}

// TestBadReload checks that a configuration that can't be read, or that workers
// refuse, changes nothing.
func TestBadReload(t *testing.T) {
	t.Parallel()
	write := reloadWriter(t)
	g := serve(t, plainUser(t), testConfig{Setup: packed(work.Setup{Cluster: "one"})})
	const quiet = int8(slog.LevelWarn) // takes effect only if the configuration is accepted
	oldConn := g.dial(t, "")
	cluster(t, oldConn)
	pids := children(t, g.cmd.Process.Pid)
	for n, bad := range []func(){
		func() {}, // no file
		func() { write(packed(work.Setup{Limits: work.Limits{Idle: time.Second}})) },
		func() { write(packed(work.Setup{Cluster: refusedCluster, Setup: ipc.Setup{LogLevel: quiet}})) },
	} {
		bad()
		g.cmd.Process.Signal(syscall.SIGHUP)
		g.awaitMany("new configuration rejected; keeping the old one", n+1)
		for _, c := range []net.Conn{oldConn, g.dial(t, "")} {
			if got := cluster(t, c); got != "one" {
				t.Errorf("after bad reload %d: cluster %q", n, got)
			}
		}
	}
	if now := children(t, g.cmd.Process.Pid); len(now) != len(pids) {
		t.Errorf("workers %v, before %v", now, pids)
	}
	write(packed(work.Setup{Cluster: "two"}))
	g.cmd.Process.Signal(syscall.SIGHUP)
	g.await("configuration reloaded", nil)
	if got := cluster(t, g.dial(t, "")); got != "two" {
		t.Errorf("a good one after bad ones: cluster %q", got)
	}
	write(packed(work.Setup{Cluster: "three", Setup: ipc.Setup{LogLevel: quiet}}))
	g.cmd.Process.Signal(syscall.SIGHUP)
	await(t, "the next good one is in force", func() bool { return cluster(t, g.dial(t, "")) == "three" })
	if n := g.count("configuration reloaded"); n != 1 {
		t.Errorf("after a log level of warn was accepted, %d lines at info", n-1)
	}
}

// TestReloadWithoutDispatcher checks that a configuration takes effect even if
// the parent reads it while a new dispatcher is still starting and no
// dispatcher is ready. The log must contain a record about the configuration.
func TestReloadWithoutDispatcher(t *testing.T) {
	t.Parallel()
	write := reloadWriter(t)
	write(packed(work.Setup{Cluster: "two"}))
	path := reloadFile(t)
	must(t, os.Rename(path, path+".two"))
	must(t, syscall.Mkfifo(path, 0o644))
	g := serve(t, plainUser(t), testConfig{Setup: packed(work.Setup{Cluster: "one"})})
	parent := g.cmd.Process.Pid
	g.cmd.Process.Signal(syscall.SIGHUP)
	fifo, err := os.OpenFile(path, os.O_WRONLY, 0) // returns when the parent reads the configuration
	must(t, err)
	before := g.dispatcherPID()
	must(t, syscall.Kill(before, syscall.SIGKILL))
	next := 0
	await(t, "the next dispatcher starts", func() bool {
		list := childrenNamed(t, parent, programs.Name(ipc.Dispatcher))
		if len(list) == 1 && list[0] != before {
			next = list[0]
		}
		return next != 0
	})
	suspend(t, next)                      // it is not ready yet
	must(t, os.Rename(path+".two", path)) // for the next time
	_, err = fifo.WriteString(mustRead(t, path))
	must(t, err)
	must(t, fifo.Close())
	time.Sleep(100 * time.Millisecond) // the parent opens the keys
	_ = syscall.Kill(next, syscall.SIGCONT)
	g.await("configuration reloaded", nil)
	if got := cluster(t, g.dial(t, "")); got != "two" {
		t.Errorf("cluster %q", got)
	}
	if n := g.count("dispatcher exited"); n != 1 {
		t.Errorf("%d dispatchers exited", n)
	}
}

// TestReloadWithDispatcherThatExits checks a dispatcher that exits before it
// has started the workers for a new configuration. The gateway must keep the
// old configuration, and must log that.
func TestReloadWithDispatcherThatExits(t *testing.T) {
	t.Parallel()
	write := reloadWriter(t)
	g := serve(t, plainUser(t), testConfig{Setup: packed(work.Setup{Cluster: "one"})})
	const reloaded, rejected = "configuration reloaded", "new configuration rejected; keeping the old one"
	current := "one"
	for pause := 200 * time.Millisecond; g.count(rejected) == 0; pause *= 2 {
		next := current + "+"
		write(packed(work.Setup{Cluster: next}))
		pid := 0
		await(t, "a dispatcher runs", func() bool {
			if list := childrenNamed(t, g.cmd.Process.Pid, programs.Name(ipc.Dispatcher)); len(list) == 1 {
				pid = list[0]
			}
			return pid != 0
		})
		reloads := g.count(reloaded)
		suspend(t, pid) // the dispatcher gets the configuration, but starts no workers for it
		g.cmd.Process.Signal(syscall.SIGHUP)
		time.Sleep(pause) // if the parent takes longer to read the configuration, only the next dispatcher gets it
		must(t, syscall.Kill(pid, syscall.SIGKILL))
		g.eventually("the reload has ended", func() bool { return g.count(rejected) > 0 || g.count(reloaded) > reloads })
		if g.count(rejected) == 0 {
			current = next
		}
	}
	if text := fmt.Sprint(g.await(rejected, nil)["error"]); !strings.Contains(text, "the dispatcher exited") {
		t.Errorf("because %s", text)
	}
	if got := cluster(t, g.dial(t, "")); got != current {
		t.Errorf("cluster %q, want %q", got, current)
	}
}

// childrenNamed returns the pids of those children of the process parent that
// have a command line beginning with name.
func childrenNamed(t *testing.T, parent int, name string) []int {
	t.Helper()
	return childrenWith(t, parent, func(line string) bool { return strings.HasPrefix(line, name) })
}

// TestReloadOfUsersWorkers checks a reload with become_user: existing
// connections must be kept, and new ones must be served with the new
// configuration.
func TestReloadOfUsersWorkers(t *testing.T) {
	t.Parallel()
	write := reloadWriter(t)
	write(packed(work.Setup{Setup: ipc.Setup{Local: true}, Cluster: "two"}))
	g, socket := serveBecomeUser(t, testConfig{Setup: packed(work.Setup{Cluster: "one"})})
	oldConn, err := thread.DialAs(31001, 31101, socket)
	if err != nil {
		t.Fatal(err)
	}
	defer oldConn.Close()
	if got := cluster(t, oldConn); got != "one" {
		t.Fatalf("cluster %q", got)
	}
	g.cmd.Process.Signal(syscall.SIGHUP)
	g.await("configuration reloaded", nil)
	next, err := thread.DialAs(31001, 31101, socket)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if got := cluster(t, next); got != "two" {
		t.Errorf("the next one: cluster %q", got)
	}
	if got := cluster(t, oldConn); got != "one" {
		t.Errorf("the one that was there: cluster %q", got)
	}
	for n, bad := range []ipc.Setup{packed(work.Setup{Setup: ipc.Setup{Local: true}, Cluster: refusedCluster}), {Local: true, JWT: true}} {
		write(bad)
		g.cmd.Process.Signal(syscall.SIGHUP)
		g.awaitMany("new configuration rejected; keeping the old one", n+1)
	}
	if got := cluster(t, next); got != "two" {
		t.Errorf("after a bad one: cluster %q", got)
	}
}

// TestReloadMakesNoCrowd checks how replaced workers count against a limit of
// one worker. Each SIGHUP replaces a worker that is still answering. One
// replaced worker does not count against the limit, so another user must be
// served. With two replaced workers, the next user must wait until one of them
// exits.
func TestReloadMakesNoCrowd(t *testing.T) {
	t.Parallel()
	write := reloadWriter(t)
	write(packed(work.Setup{Setup: ipc.Setup{Local: true}, Cluster: "two"}))
	g, socket := serveBecomeUser(t, testConfig{Argv: argv{ipc.Dispatcher: dispatcherArgs(dispatcher.Limits{WaitLimit: patience})}, Setup: packed(work.Setup{Cluster: "one"}), Identities: 1})
	startSlowRequest := func() net.Conn {
		t.Helper()
		c, err := thread.DialAs(31001, 31101, socket)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		fmt.Fprint(c, "GET /wait?ms=3600000 HTTP/1.1\r\nHost: x\r\n\r\n")
		return c
	}
	first := startSlowRequest()
	g.awaitMany("worker: a request waits", 1)
	g.cmd.Process.Signal(syscall.SIGHUP)
	g.awaitMany("configuration reloaded", 1)
	if c, status, body := askAs(t, socket, 31002, 31102, "/setup"); status != http.StatusOK || !strings.Contains(body, `"Cluster":"two"`) {
		t.Errorf("another user: %d %s", status, body)
	} else {
		c.Close()
	}
	startSlowRequest()
	g.awaitMany("worker: a request waits", 2)
	g.cmd.Process.Signal(syscall.SIGHUP)
	g.awaitMany("configuration reloaded", 2)
	next, err := thread.DialAs(31002, 31102, socket)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	fmt.Fprint(next, request)
	time.Sleep(500 * time.Millisecond) // enough time to serve them
	if n := len(children(t, g.cmd.Process.Pid)); n != 2+refusalWorkers {
		t.Errorf("%d workers, with room for one and as many that were replaced", n)
	}
	first.Close()
	next.SetDeadline(time.Now().Add(patience))
	if status, body, err := answer(next); status != http.StatusOK {
		t.Errorf("with room again: %d %s %v", status, body, err)
	}
}

// TestHangUpWhileDraining checks that a SIGHUP does not cut the shutdown short,
// as a second signal to stop would.
func TestHangUpWhileDraining(t *testing.T) {
	t.Parallel()
	g := serve(t, plainUser(t), testConfig{})
	c := g.dial(t, "GET /wait?ms=1000 HTTP/1.1\r\nHost: x\r\n\r\n")
	g.await("worker: a request waits", nil)
	g.cmd.Process.Signal(syscall.SIGTERM)
	g.await("draining", nil)
	g.cmd.Process.Signal(syscall.SIGHUP)
	if status, body, err := answer(c); status != http.StatusOK || body != "waited" {
		t.Errorf("%d %s %v", status, body, err)
	}
	if g.wait() != 0 {
		t.Error("the end is not a clean one")
	}
}

// TestAgedAfterReload checks that workers that replace old ones get the last
// accepted configuration, even if a newer one was refused.
func TestAgedAfterReload(t *testing.T) {
	t.Parallel()
	const rotateAfter = 5
	write := reloadWriter(t)
	g := serve(t, plainUser(t), testConfig{Argv: argv{ipc.Dispatcher: dispatcherArgs(dispatcher.Limits{RotateAfter: rotateAfter})}, Setup: packed(work.Setup{Cluster: "one"})})
	wearOut := func(want string) {
		t.Helper()
		old := children(t, g.cmd.Process.Pid)
		for range rotateAfter {
			g.mustGet("/pid")
		}
		for _, pid := range old {
			g.eventually(fmt.Sprintf("worker %d is done", pid), func() bool {
				g.mu.Lock()
				defer g.mu.Unlock()
				for _, r := range g.records {
					if r["msg"] == "new workers cannot serve; keeping the old ones" {
						t.Fatal(r)
					}
					if r["msg"] == "worker exited" && r["pid"] == float64(pid) {
						return true
					}
				}
				return false
			})
		}
		c := g.dial(t, "")
		defer c.Close() // an open connection would keep its worker from exiting
		if got := cluster(t, c); got != want {
			t.Errorf("the replacements serve cluster %q, want %q", got, want)
		}
	}
	write(packed(work.Setup{Cluster: refusedCluster}))
	g.cmd.Process.Signal(syscall.SIGHUP)
	g.await("new configuration rejected; keeping the old one", nil)
	wearOut("one")
	write(packed(work.Setup{Cluster: "two"}))
	g.cmd.Process.Signal(syscall.SIGHUP)
	g.await("configuration reloaded", nil)
	wearOut("two")
}

// TestAgedWorkers checks that old workers are replaced without failed requests.
func TestAgedWorkers(t *testing.T) {
	t.Parallel()
	g := serve(t, plainUser(t), testConfig{Argv: argv{ipc.Dispatcher: dispatcherArgs(dispatcher.Limits{RotateAfter: 10})}})
	first := children(t, g.cmd.Process.Pid)
	for range 30 {
		if _, err := g.get("/pid"); err != nil {
			t.Fatal(err)
		}
	}
	for _, pid := range first {
		g.await("worker exited", func(r map[string]any) bool { return r["pid"] == float64(pid) && r["connections_lost"] == 0.0 })
	}
	g.mustGet("/pid")
}
