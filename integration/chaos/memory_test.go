package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"schedrestd/bundled/ctld/process"
	"schedrestd/integration/harness"
)

// TestMemoryLimit lets requests exceed the memory of the gateway's control group, as
// with MemoryMax= and OOMPolicy=continue in the units. The kernel must kill workers and
// no other process, and the gateway must go on serving.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to create a control group")
	}
	g := newMemoryGroup(t, 160<<20)
	l := harness.NewLab(t)
	address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	gateway := l.StartGateway(t, nil, address)
	parent := gateway.PID()
	g.add(t, append(others(t, parent), append(gateway.Workers(), parent)...)...)
	before := others(t, parent)
	client := harness.NewClient(harness.DialFunc("tcp", address))
	body := `{"job":{"script":"` + strings.Repeat("x", 48<<20) + `"}}`
	for waves := 0; g.killed(t) == 0; waves++ {
		if waves == 20 {
			t.Fatal("the kernel has killed no process")
		}
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() { _, _ = l.TryRequest(client, "POST", "/sched/"+harness.Version+"/job/submit", body) }) // most fail
		}
		wait.Wait()
	}
	harness.Eventually(t, "the gateway serves again", func() bool {
		a, err := gateway.Ping(address)
		return err == nil && a.Status == 200
	})
	after := others(t, parent) // these may include a worker that has not started its program yet
	if slices.ContainsFunc(before, func(pid int) bool { return !slices.Contains(after, pid) }) {
		t.Errorf("the processes that are no workers were %d, and are %d", before, after)
	}
	if !strings.Contains(gateway.Logged(), `msg="worker exited unexpectedly"`) {
		t.Errorf("no worker was killed:\n%s", gateway.Logged())
	}
}

// others returns the descendants of the parent that are no workers.
func others(t *testing.T, parent int) (pids []int) {
	list, err := process.Descendants(parent)
	harness.Must(t, err)
	for _, st := range list {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", st.PID))
		if !strings.HasPrefix(string(text), "schedrestd-work") {
			pids = append(pids, st.PID)
		}
	}
	return pids
}

// memoryGroup is a control group that limits memory.
type memoryGroup struct{ dir, events string }

// newMemoryGroup creates a control group of version 2 or 1 below that of this process, or
// skips the test.
func newMemoryGroup(t *testing.T, limit int) memoryGroup {
	text, err := os.ReadFile("/proc/self/cgroup")
	harness.Must(t, err)
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		g, file := memoryGroup{"/sys/fs/cgroup" + f[2], "memory.events"}, "memory.max"
		if slices.Contains(strings.Split(f[1], ","), "memory") {
			g, file = memoryGroup{"/sys/fs/cgroup/memory" + f[2], "memory.oom_control"}, "memory.limit_in_bytes"
		}
		if g.dir, err = os.MkdirTemp(g.dir, "schedrestd-test-"); err != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(g.dir) })
		if os.Truncate(filepath.Join(g.dir, file), 0) == nil { // the file exists
			harness.Must(t, os.WriteFile(filepath.Join(g.dir, file), []byte(strconv.Itoa(limit)), 0))
			return g
		}
	}
	t.Skip("this process may create no control group that limits memory")
	return memoryGroup{}
}

// add moves processes to the group.
func (g memoryGroup) add(t *testing.T, pids ...int) {
	for _, pid := range pids {
		harness.Must(t, os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0))
	}
}

// killed returns how many processes the kernel has killed for lack of memory.
func (g memoryGroup) killed(t *testing.T) (n int) {
	text, err := os.ReadFile(filepath.Join(g.dir, g.events))
	harness.Must(t, err)
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "oom_kill %d", &n); err == nil {
			return n
		}
	}
	t.Fatalf("no oom_kill in %s", text)
	return 0
}
