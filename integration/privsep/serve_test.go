package privsep

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/auth"
	"schedrestd/become"
	"schedrestd/gateway/dispatcher/admission"
	"schedrestd/gateway/plan"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// TestPeerFacts checks that the handler gets the facts that the kernel reports
// about a client.
func TestPeerFacts(t *testing.T) {
	t.Parallel()
	dir := sockettest.Dir(t)
	as := plainUser(t)
	path := socketDir(t, dir, as) + "/s"
	g := serve(t, as, testConfig{Listen: listens("127.0.0.1:0", "[::1]:0", "unix:"+path),
		Setup: packed(work.Setup{Setup: ipc.Setup{JWT: true}, Cluster: "tiny"})})
	peer := func(network, addr string) (p auth.Peer) {
		body, err := get(client(network, addr, false), "/peer")
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(body), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	tcp := peer("tcp", g.addr)
	if host, _, _ := net.SplitHostPort(tcp.Addr); host != "127.0.0.1" || tcp.Listener != g.addr || tcp.UID != ipc.NoID {
		t.Errorf("TCP: %+v", tcp)
	}
	u := peer("unix", path)
	want := auth.Peer{Network: "unix", UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), PID: int32(os.Getpid()), Listener: "unix:" + path}
	want.Verified = (become.Ucred{UID: want.UID, GID: want.GID}).Verify() == nil // group 0 stands for no user
	if diff := cmp.Diff(want, u); diff != "" {
		t.Errorf("UNIX (-want +got):\n%s", diff)
	}
	var s work.Setup
	if err := json.Unmarshal([]byte(g.mustGet("/setup")), &s); err != nil || s.Cluster != "tiny" || s.Files != 3*plan.DefaultConnections+64+4*ipc.DialBatchSize+s.Watching || s.Watching == 0 || s.Limits != testLimits {
		t.Errorf("setup: %+v %v", s, err)
	}
}

// socketDir permits the given user to listen in the directory dir, and returns
// dir.
func socketDir(t *testing.T, dir string, as user) string {
	t.Helper()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if as != nil {
		if err := os.Chown(dir, int(as.Uid), int(as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestKilledWorkers kills 20 workers, one after the other, each time while 50
// clients hold connections. After each kill, the next request must be answered.
// At the end, all slots must be free again, and the dispatcher must not have
// leaked a descriptor. Package pool tests more kills.
func TestKilledWorkers(t *testing.T) {
	t.Parallel()
	as := user(nil)
	if os.Geteuid() != 0 {
		t.Skip("needs root: reads the parent's descriptors, which is not dumpable")
	}
	as = plainUser(t)
	v, s := newVault(t, as), newSite(t, as)
	c := v.config(testConfig{Connections: 60, Listen: listens("127.0.0.1:0", "https://127.0.0.2:0")})
	c.TLS = s.TLS // so that workers get everything that a worker can get
	g := serve(t, as, c)
	var before []string
	for n := range 20 {
		conns := hold(t, g.addr, 50)
		pid := g.workerPID()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if _, err := g.get("/pid"); err != nil {
			t.Fatalf("the request after death %d: %v", n+1, err)
		}
		for _, c := range conns {
			c.Close()
		}
		if n == 9 {
			g.awaitSettled(t, 60, n+1)
			before = descriptors(t, g.dispatcherPID())
		}
	}
	g.awaitSettled(t, 60, 20)
	// While a connection is being passed to a worker, the dispatcher briefly
	// has a descriptor for it. Only a leaked descriptor stays open.
	var after []string
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("descriptors after 10 deaths:\n%s\nand at the end:\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
		}
	})
	await(t, fmt.Sprintf("the dispatcher has no more than the %d descriptors of after 10 deaths", len(before)), func() bool {
		after = descriptors(t, g.dispatcherPID())
		return len(after) <= len(before)
	})
}

// hold opens n connections and waits for one answer on each.
func hold(t *testing.T, addr string, n int) []net.Conn {
	t.Helper()
	var list []net.Conn
	for range n {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "GET /pid HTTP/1.1\r\nHost: x\r\n\r\n")
		list = append(list, c)
	}
	for _, c := range list {
		buf := make([]byte, 1000)
		c.SetReadDeadline(time.Now().Add(patience))
		if n, err := c.Read(buf); err != nil || n == 0 {
			t.Fatalf("a held connection was not answered: %v", err)
		}
	}
	return list
}

// occupy opens n connections and sends a request on each. The requests are not
// answered before the test closes the connections.
func (g *gateway) occupy(t *testing.T, n int) (list []net.Conn) {
	t.Helper()
	for range n {
		c, err := net.Dial("tcp", g.addr)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.(*net.TCPConn).SetLinger(0); err != nil { // makes the close send a reset, which shows that the client is gone and has not merely finished sending
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		fmt.Fprintf(c, "GET /wait?ms=3600000 HTTP/1.1\r\nHost: x\r\n\r\n")
		list = append(list, c)
	}
	g.awaitMany("worker: a request waits", n)
	return list
}

// awaitSettled waits until the dispatcher has noticed the given number of
// deaths, all workers are ready again, and all n slots are free.
func (g *gateway) awaitSettled(t *testing.T, n, deaths int) {
	t.Helper()
	for _, c := range hold(t, g.addr, n) {
		c.Close()
	}
	count := func() (ready, ended int) {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, r := range g.records {
			switch r["msg"] {
			case "worker ready":
				ready++
			case "worker exited unexpectedly":
				ended++
			}
		}
		return ready, ended
	}
	await(t, "the pool is full again", func() bool { ready, ended := count(); return ended >= deaths && ready-ended == 2 })
}

// TestMaxConnections checks that the gateway serves at most the configured
// number of connections concurrently. Further connections must be served when a
// slot becomes free, and none may be lost.
func TestMaxConnections(t *testing.T) {
	t.Parallel()
	g := serve(t, plainUser(t), testConfig{Connections: 3, Listen: listens("127.0.0.1:0", "[::1]:0")})
	conns := g.occupy(t, 3)
	answered := make(chan error, 1)
	go func() {
		_, err := g.get("/pid")
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Errorf("a fourth connection was served beside three: %v", err)
	case <-time.After(3 * admission.TickInterval): // the busy connections were reclaimed, but stayed open
	}
	conns[0].Close()
	if err := <-answered; err != nil {
		t.Errorf("the one that waited: %v", err)
	}
	for _, c := range conns[1:] {
		c.Close()
	}
	var wg sync.WaitGroup
	for range 300 {
		wg.Go(func() {
			if _, err := g.get("/wait?ms=1"); err != nil {
				t.Errorf("one of 300 over a limit of 3: %v", err)
			}
		})
	}
	wg.Wait()
}

// TestDrain checks what the gateway does at a signal: it closes the listeners,
// answers the requests in progress, closes idle connections, and exits with
// status 0.
func TestDrain(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			as := plainUser(t)
			path := socketDir(t, sockettest.Dir(t), as) + "/s"
			g := serve(t, as, testConfig{Listen: listens("127.0.0.1:0", "unix:"+path)})
			idle := hold(t, g.addr, 2)
			answered := make(chan error, 1)
			go func() {
				body, err := g.get("/wait?ms=700")
				if err == nil && body != "waited" {
					err = errors.New(body)
				}
				answered <- err
			}()
			g.await("worker: a request waits", nil)
			g.cmd.Process.Signal(sig)
			if err := <-answered; err != nil {
				t.Errorf("the request in flight: %v", err)
			}
			if status := g.wait(); status != 0 {
				t.Errorf("exit status %d", status)
			}
			if _, err := net.Dial("tcp", g.addr); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("after the end: %v", err)
			}
			for _, c := range idle {
				c.SetReadDeadline(time.Now().Add(patience))
				if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) || err == nil {
					t.Errorf("an idle connection stays open: %v", err)
				}
			}
			if leftovers, _ := filepath.Glob(filepath.Dir(path) + "/*"); len(leftovers) > 0 {
				t.Errorf("left behind: %q", leftovers)
			}
		})
	}
}

// TestSecondSignal checks that a second signal ends a shutdown that is still
// waiting for requests. Programs such as timeout(1) send a signal twice, so the
// gateway ignores an immediate repetition of the same signal. Therefore this
// test uses two different signals.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	g := serve(t, plainUser(t), testConfig{})
	go g.get("/wait?ms=3600000")
	g.await("worker: a request waits", nil)
	g.cmd.Process.Signal(syscall.SIGTERM)
	g.await("draining", nil)
	g.cmd.Process.Signal(syscall.SIGTERM)
	g.cmd.Process.Signal(syscall.SIGINT)
	if text, _ := g.failure(); text == "" {
		t.Error("no word about what was not answered")
	}
}

// TestParentDies checks that the workers do not outlive their parent.
func TestParentDies(t *testing.T) {
	t.Parallel()
	g := serve(t, plainUser(t), testConfig{})
	pid := g.workerPID()
	g.cmd.Process.Kill()
	g.wait()
	await(t, "its worker is gone", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ") // its parent has not reaped it yet
	})
}

// TestDrainHasAnEnd checks that a shutdown kills a worker that does not exit by
// itself.
func TestDrainHasAnEnd(t *testing.T) {
	t.Parallel()
	limits := testLimits
	limits.Drain = 50 * time.Millisecond
	g := serve(t, plainUser(t), testConfig{Argv: argv{ipc.Worker: {"never ends"}}, Setup: packed(work.Setup{Limits: limits})})
	g.cmd.Process.Signal(syscall.SIGTERM)
	g.awaitReason("worker terminated", "did not exit in time")
	g.wait()
}

// TestLimitsAreComplete checks that the gateway does not start if a limit is 0,
// because such a limit would limit nothing.
func TestLimitsAreComplete(t *testing.T) {
	t.Parallel()
	limits := testLimits
	limits.Idle = 0
	if text, _ := launch(t, plainUser(t), testConfig{Setup: packed(work.Setup{Limits: limits})}).failure(); !strings.Contains(text, "Idle is not set") {
		t.Errorf("error %q", text)
	}
}
