package privsep

import (
	"syscall"
	"testing"
)

// TestSandboxViolationIsCounted: a worker that is killed by SIGSYS is distinguished from
// one that crashed, and counted separately.
func TestSandboxViolationIsCounted(t *testing.T) {
	needSandbox(t)
	g := serve(t, plain(t), Config{})
	if what := g.attack("make a directory"); what != "is killed by SIGSYS" {
		t.Errorf("it %s", what)
	}
	must(t, syscall.Kill(g.cmd.Process.Pid, syscall.SIGUSR1))
	r := g.await("counters", nil)
	// More than one when the client asked again: the connection was one that had been used.
	if workers, _ := r["workers"].(map[string]any); workers["forbidden_call"] == 0.0 || workers["died"] != 0.0 {
		t.Errorf("%v", r["workers"])
	}
}
