package privsep

import (
	"syscall"
	"testing"
)

// TestSandboxViolationIsCounted checks that the dispatcher has separate counts
// for workers that SIGSYS killed and for workers that crashed.
func TestSandboxViolationIsCounted(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	g := serve(t, plainUser(t), testConfig{})
	if outcome := g.attack("make a directory"); outcome != "is killed by SIGSYS" {
		t.Errorf("it %s", outcome)
	}
	must(t, syscall.Kill(g.cmd.Process.Pid, syscall.SIGUSR1))
	r := g.await("counters", nil)
	// The attack may have killed more than one worker. If a connection that the
	// HTTP client reuses breaks, the client repeats the request, and another
	// worker carries out the attack.
	if workers, _ := r["workers"].(map[string]any); workers["forbidden_call"] == 0.0 || workers["died"] != 0.0 {
		t.Errorf("%v", r["workers"])
	}
}
