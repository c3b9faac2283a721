package privsep

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"schedrestd/security/sandbox/sandboxtest"
)

// TestParentPrivileges starts the gateway without root, as root with -u, and as
// root with become_user. Each time, every thread of the parent must have the
// privileges that docs/design/PRIVSEP.md names. No thread may be able to gain further
// privileges by executing a program.
func TestParentPrivileges(t *testing.T) {
	t.Parallel()
	const kept, passed = "00000000000000e0", "00000000000000c0" // the parent keeps SETUID, SETGID and KILL; it passes the first two to the stage that starts other processes
	root := map[string]string{"Uid": "0 0 0 0", "Gid": "0 0 0 0", "CapInh": passed, "CapPrm": kept, "CapEff": kept, "CapBnd": none16, "CapAmb": none16, "NoNewPrivs": "1"}
	t.Run("without root", func(t *testing.T) {
		g := serve(t, plainUser(t), testConfig{})
		want := map[string]string{"CapInh": none16, "CapPrm": none16, "CapEff": none16, "CapAmb": none16, "NoNewPrivs": "1"}
		if sandboxtest.Cgo {
			delete(want, "NoNewPrivs")
		}
		g.mustGet("/pid")
		g.checkEveryThread(want)
	})
	t.Run("root with -u", func(t *testing.T) {
		needRoot(t)
		g := serve(t, nil, testConfig{Service: identityOf("nobody", "nogroup", "")})
		g.mustGet("/pid")
		g.checkEveryThread(root)
	})
	t.Run("become_user", func(t *testing.T) {
		g, socket := serveBecomeUser(t, testConfig{})
		askAs(t, socket, 31001, 31101, "/pid")
		g.checkEveryThread(root)
	})
}

// checkEveryThread compares the status of each thread of the parent with want.
func (g *gateway) checkEveryThread(want map[string]string) {
	g.t.Helper()
	pid := g.cmd.Process.Pid
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	must(g.t, err)
	for _, thread := range threads {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/status", pid, thread.Name()))
		if os.IsNotExist(err) {
			continue // it has ended
		}
		must(g.t, err)
		have := map[string]string{}
		for line := range strings.Lines(string(raw)) {
			name, value, _ := strings.Cut(line, ":")
			have[name] = strings.Join(strings.Fields(value), " ")
		}
		for name, value := range want {
			if have[name] != value {
				g.t.Errorf("%s of thread %s is %q, want %q", name, thread.Name(), have[name], value)
			}
		}
	}
	if len(threads) < 3 {
		g.t.Errorf("the parent has %d threads", len(threads))
	}
}
