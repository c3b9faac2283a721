package gateway

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"schedrestd/integration/harness"
)

// TestSchedctlWaits checks that the commands that wait for jobs leave the waiting
// to the gateway, and that they survive a reload and a restart of the gateway.
func TestSchedctlWaits(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	submit := func(args ...string) string {
		t.Helper()
		status, out, errOut := schedctl(t, l, l.URL, l.OwnToken, append([]string{"submit"}, args...)...)
		if status != 0 {
			t.Fatalf("submit: status %d, %s", status, errOut)
		}
		return strings.TrimSpace(out)
	}
	end := filepath.Join(l.Work, "end")
	id := submit("--wrap", "until test -e "+end+"; do sleep 0.1; done; exit 7", "--", "-o", "/dev/null")
	many := []string{id}
	for range 9 {
		many = append(many, submit("--wrap", "exit 0", "--", "-o", "/dev/null"))
	}

	type command struct {
		*exec.Cmd
		log string // file with standard error
	}
	start := func(args ...string) *command {
		c := &command{exec.Command(filepath.Join(harness.Bin, "schedctl"), append(args, "-v")...), filepath.Join(t.TempDir(), "log")}
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "SCHED_URL=" + l.URL, "SCHED_CONF=/nowhere", "SCHED_JWT=" + l.OwnToken}
		log, err := os.Create(c.log)
		harness.Must(t, err)
		defer log.Close()
		c.Stderr = log
		harness.Must(t, c.Start())
		return c
	}
	requests := func(c *command) int { // for jobs
		text, err := os.ReadFile(c.log)
		harness.Must(t, err)
		return strings.Count(string(text), "request: GET /sched/v0.0.45/job")
	}
	commands := []*command{start("wait", id), start("watch", id), start(append([]string{"wait"}, many...)...)}
	begun := []int{2, 2, 3} // requests until the gateway waits; later ones are answered as soon as something changes
	for i, c := range commands {
		harness.Eventually(t, "the command waits", func() bool { return requests(c) >= begun[i] })
	}
	gateway := l.Daemons["schedrestd"]
	harness.Must(t, syscall.Kill(gateway.PID(), syscall.SIGHUP))
	for i, c := range commands {
		harness.Eventually(t, "the command asks again after the reload", func() bool { return requests(c) > begun[i] })
	}
	gateway.Stop()
	l.Up(l.Restd)
	harness.Must(t, os.WriteFile(end, nil, 0o644))
	for _, c := range commands {
		c.Wait()
		text, err := os.ReadFile(c.log)
		harness.Must(t, err)
		if status := c.ProcessState.ExitCode(); status != 7 || !strings.Contains(string(text), "note: the server answers when something has changed") {
			t.Errorf("%q: status %d\n%s", c.Args[1:], status, text)
		}
	}
}
