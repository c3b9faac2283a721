package privsep

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
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

// TestCountersBeforeServing sends SIGUSR1 again and again while the gateway
// starts. The parent must not pass it to a dispatcher that can't serve yet,
// because that would end the dispatcher, and with it the first start.
func TestCountersBeforeServing(t *testing.T) {
	t.Parallel()
	g := launch(t, plainUser(t), testConfig{})
	var wait sync.WaitGroup
	serving := make(chan struct{})
	wait.Go(func() {
		for {
			select {
			case <-serving:
				return
			case <-time.After(200 * time.Microsecond):
				if catches(g.cmd.Process.Pid, syscall.SIGUSR1) { // before, the signal would kill the process
					_ = syscall.Kill(g.cmd.Process.Pid, syscall.SIGUSR1)
				}
			}
		}
	})
	g.await("serving", nil)
	close(serving)
	wait.Wait()
}

// catches reports whether a process has a handler for the signal.
func catches(pid int, s syscall.Signal) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(status), "SigCgt:\t")
	line, _, _ := strings.Cut(rest, "\n")
	caught, err := strconv.ParseUint(line, 16, 64)
	return err == nil && caught&(1<<(s-1)) != 0
}
