package privsep

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"schedrestd/ipc"
)

// spareNamespaces is the number of prepared namespaces that no process uses yet.
// TestPreparedGone checks it.
const spareNamespaces = 2

// namespaceInits returns the init processes of the PID namespaces that a parent
// has created, oldest first.
func namespaceInits(t *testing.T, parent int) (list []int) {
	t.Helper()
	t.Helper()
	list = childrenWith(t, parent, func(line string) bool { return strings.HasSuffix(line, ipc.NamespaceInitMode+"\x00") })
	slices.SortFunc(list, func(a, b int) int { return cmp.Or(cmp.Compare(startTicks(t, a), startTicks(t, b)), cmp.Compare(a, b)) })
	return list
}

// startTicks returns the time when a process was started, in clock ticks since
// the boot of the machine (proc_pid_stat(5)). Pids do not show which process
// was started first, because the kernel uses small pids again after the largest
// one.
func startTicks(t *testing.T, pid int) int {
	t.Helper()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(t, err)
	fields := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:])) // from the third on
	ticks, err := strconv.Atoi(fields[22-3])
	must(t, err)
	return ticks
}

// namespaceInitOf returns the init process of the PID namespace that contains
// worker.
func namespaceInitOf(t *testing.T, g *gateway, worker int) int {
	t.Helper()
	pid := findNamespaceInit(t, g, worker)
	if pid == 0 {
		t.Fatal("there is no first process")
	}
	return pid
}

// findNamespaceInit does the same as namespaceInitOf, but returns 0 if the
// process or its init has exited.
func findNamespaceInit(t *testing.T, g *gateway, process int) int {
	t.Helper()
	namespaceOf := func(pid int) string {
		id, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
		return id
	}
	want := namespaceOf(process)
	for _, pid := range namespaceInits(t, g.cmd.Process.Pid) {
		if want != "" && namespaceOf(pid) == want {
			return pid
		}
	}
	return 0
}

// TestNamespaceInitHasNoPrivileges checks that the init process of a PID
// namespace has no privileges and can't be signalled by workers.
func TestNamespaceInitHasNoPrivileges(t *testing.T) {
	t.Parallel()
	needRoot(t)
	g := serve(t, nil, testConfig{Service: identityOf("nobody", "nogroup", "")})
	pid := namespaceInitOf(t, g, g.workerPID())
	for name, want := range map[string]string{"CapPrm": "0000000000000000", "NoNewPrivs": "1", "Groups": ""} {
		if got := status(t, pid, name); got != want {
			t.Errorf("its %s is %q", name, got)
		}
	}
	if uid := status(t, pid, "Uid"); uid == status(t, g.workerPID(), "Uid") || uid == "0 0 0 0" {
		t.Errorf("it is %s", uid)
	}
	if a, b := namespace(t, pid, "pid"), namespace(t, g.workerPID(), "pid"); a != b || a == namespace(t, g.cmd.Process.Pid, "pid") {
		t.Errorf("it is in PID namespace %s, the worker in %s", a, b)
	}
}

// TestNamespaceInitGone kills the init process of a PID namespace. This also
// ends all workers in the namespace. The same parent must start other workers,
// confined in the same way, in the next prepared namespace. When no prepared
// namespace is left, each worker must get its own namespaces, which depend on
// no shared init process.
func TestNamespaceInitGone(t *testing.T) {
	t.Parallel()
	needRoot(t)
	g := serve(t, nil, testConfig{Service: identityOf("nobody", "nogroup", "")})
	seen := map[string]bool{}
	for i := range spareNamespaces + 1 {
		worker := g.workerPID()
		link := namespace(t, worker, "pid")
		if seen[link] || link == namespace(t, g.cmd.Process.Pid, "pid") {
			t.Errorf("after %d losses the worker is in PID namespace %s", i, link)
		}
		seen[link] = true
		for _, name := range []string{"net", "ipc", "mnt"} {
			if namespace(t, worker, name) == namespace(t, g.cmd.Process.Pid, name) {
				t.Errorf("after %d losses the worker is in the machine's %s namespace", i, name)
			}
		}
		must(t, syscall.Kill(namespaceInitOf(t, g, worker), syscall.SIGKILL))
		g.awaitMany("namespace init exited", i+1)
		g.awaitMany("workers and services replaced", i+1)
		await(t, "its worker is gone, too", func() bool { return syscall.Kill(worker, 0) != nil })
	}
	worker := g.workerPID()
	for _, name := range []string{"user", "pid", "net", "ipc", "mnt"} {
		if namespace(t, worker, name) == namespace(t, g.cmd.Process.Pid, name) { // the number of a namespace that is gone can be used again
			t.Errorf("with no namespace left the worker is in the machine's %s namespace", name)
		}
	}
	for name, want := range map[string]string{"CapPrm": "0000000000000000", "CapBnd": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2"} {
		if got := status(t, worker, name); got != want {
			t.Errorf("with no namespace left the worker's %s is %q", name, got)
		}
	}
	must(t, syscall.Kill(worker, syscall.SIGKILL))
	await(t, "it is gone", func() bool { return syscall.Kill(worker, 0) != nil })
	if next := g.workerPID(); namespace(t, next, "pid") == namespace(t, g.cmd.Process.Pid, "pid") {
		t.Error("the next worker is in the machine's PID namespace")
	}
}

// TestNamespaceInitAsksForGeneration kills an init process whose namespace
// contains only workers. The parent must then build exactly one new generation
// of workers and services. The test counts resolvers, because each generation
// starts one. A resolver is in no PID namespace, so no resolver ends with the
// init process.
func TestNamespaceInitAsksForGeneration(t *testing.T) {
	t.Parallel()
	needRoot(t)
	g := serve(t, nil, testConfig{Service: identityOf("nobody", "nogroup", "")})
	for n := range 2 {
		must(t, syscall.Kill(namespaceInitOf(t, g, g.workerPID()), syscall.SIGKILL))
		g.awaitMany("namespace init exited", n+1)
		g.awaitMany("workers and services replaced", n+1)
		if got := g.count("resolver ready"); got != n+2 {
			t.Errorf("%d resolvers were started", got)
		}
		g.mustGet("/pid")
	}
	if n := g.count("resolver exited"); n != 0 {
		t.Errorf("%d resolvers failed", n)
	}
}

// TestPreparedGone checks that the parent skips a prepared namespace whose init
// process has exited before the namespace was needed.
func TestPreparedGone(t *testing.T) {
	t.Parallel()
	needRoot(t)
	g := serve(t, nil, testConfig{Service: identityOf("nobody", "nogroup", "")})
	inUse := namespaceInitOf(t, g, g.workerPID())
	list := namespaceInits(t, g.cmd.Process.Pid)
	if len(list) != spareNamespaces+1 || list[0] != inUse {
		t.Fatalf("the first processes are %v, and %d is in use", list, inUse)
	}
	must(t, syscall.Kill(list[1], syscall.SIGKILL))
	await(t, "it is gone", func() bool { return syscall.Kill(list[1], 0) != nil })
	must(t, syscall.Kill(inUse, syscall.SIGKILL))
	g.await("namespace init exited", nil)
	g.await("workers and services replaced", nil)
	if got := namespaceInitOf(t, g, g.workerPID()); got != list[2] {
		t.Errorf("the first process is now %d of %v", got, list)
	}
}

// TestKeeperAfterNamespaceInit checks that after the loss of an init process, a
// worker signs handshakes with a new keeper. While a prepared namespace is
// left, both must be in the same namespace.
func TestKeeperAfterNamespaceInit(t *testing.T) {
	t.Parallel()
	needRoot(t)
	s := newSite(t, nil)
	g := serve(t, nil, s.config(testConfig{Service: identityOf("nobody", "nogroup", "")}))
	for n := 1; n <= spareNamespaces+1; n++ {
		var lost int
		g.eventually("the init of the last keeper is killed", func() bool { // a keeper that was replaced twice may exit now
			lost = g.lastPID("keeper ready")
			pid := findNamespaceInit(t, g, lost)
			return pid != 0 && syscall.Kill(pid, syscall.SIGKILL) == nil
		})
		g.eventually("a worker signs with a keeper in the same namespace", func() bool {
			_, token, err := secured(s.client(g.addr), "/pid")
			if err != nil || g.lastPID("keeper ready") == lost {
				return false
			}
			// If another loss is noticed only now, both processes are replaced
			// again.
			keeper, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", g.lastPID("keeper ready")))
			worker, err2 := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pidOf(t, token)))
			same := n <= spareNamespaces // without a prepared namespace, each process has its own
			return err == nil && err2 == nil && (keeper == worker) == same
		})
	}
}

// TestQueuedOverLoss ends a PID namespace while connections are waiting for a
// worker. A worker in the next namespace must serve these connections.
func TestQueuedOverLoss(t *testing.T) {
	t.Parallel()
	needRoot(t)
	g := serve(t, nil, testConfig{Service: identityOf("nobody", "nogroup", ""), Workers: 1})
	worker := g.workerPID()
	suspend(t, worker) // new connections now wait in the worker's channel
	await(t, "the worker has stopped", func() bool { return strings.HasPrefix(status(t, worker, "State"), "T") })
	answered := make(chan error, 3)
	for range cap(answered) {
		c, err := net.Dial("tcp", g.addr)
		must(t, err)
		defer c.Close()
		fmt.Fprint(c, "GET /pid HTTP/1.0\r\n\r\n")
		go func() {
			text, err := io.ReadAll(c)
			if err == nil && !strings.HasPrefix(string(text), "HTTP/1.0 200 ") {
				err = fmt.Errorf("it was answered %q", text)
			}
			answered <- err
		}()
	}
	await(t, "the parent has accepted them", func() bool { return heldSockets(t, g.dispatcherPID()) == cap(answered) })
	must(t, syscall.Kill(namespaceInitOf(t, g, worker), syscall.SIGKILL))
	for range cap(answered) {
		if err := <-answered; err != nil {
			t.Error(err)
		}
	}
}

// heldSockets returns the number of TCP connections that a process has open.
// Listeners are not counted.
func heldSockets(t *testing.T, pid int) (n int) {
	t.Helper()
	established := map[string]bool{}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
	must(t, err)
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) > 9 && f[3] == "01" {
			established["socket:["+f[9]+"]"] = true
		}
	}
	list, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, path := range list {
		if link, _ := os.Readlink(path); established[link] {
			n++
		}
	}
	return n
}

// TestParentGone checks that a suspended worker and the init process of its
// namespace end when the parent is killed.
func TestParentGone(t *testing.T) {
	t.Parallel()
	needRoot(t)
	g := serve(t, nil, testConfig{Service: identityOf("nobody", "nogroup", "")})
	worker := g.workerPID()
	first := namespaceInitOf(t, g, worker)
	suspend(t, worker) // it can't notice by itself
	must(t, g.cmd.Process.Kill())
	for _, pid := range []int{worker, first} {
		await(t, fmt.Sprintf("process %d is gone with the parent", pid), func() bool { return syscall.Kill(pid, 0) != nil })
	}
}
