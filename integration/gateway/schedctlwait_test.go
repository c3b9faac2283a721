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
		out string // file with standard output
		log string // file with standard error
	}
	start := func(args ...string) *command {
		dir := t.TempDir()
		c := &command{exec.Command(filepath.Join(harness.Bin, "schedctl"), append(args, "-v")...), filepath.Join(dir, "out"), filepath.Join(dir, "log")}
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "SCHED_URL=" + l.URL, "SCHED_CONF=/nowhere", "SCHED_JWT=" + l.OwnToken}
		out, err := os.Create(c.out)
		harness.Must(t, err)
		defer out.Close()
		log, err := os.Create(c.log)
		harness.Must(t, err)
		defer log.Close()
		c.Stdout, c.Stderr = out, log
		harness.Must(t, c.Start())
		t.Cleanup(func() { c.Process.Kill() })
		return c
	}
	read := func(file string) string {
		text, err := os.ReadFile(file)
		harness.Must(t, err)
		return string(text)
	}
	requests := func(c *command) int { return strings.Count(read(c.log), "request: GET /sched/v0.0.45/job") }
	commands := []*command{start("watch", "--me"), start("wait", id), start("watch", id), start(append([]string{"wait"}, many...)...)}
	begun := []int{2, 2, 2, 3} // requests until the gateway waits; later ones are answered as soon as something changes
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
	all := commands[0]
	harness.Eventually(t, "watch prints the end of the job", func() bool { return strings.Contains(read(all.out), "FAILED, exit code 7\n") })
	harness.Must(t, all.Process.Signal(os.Interrupt))
	for i, c := range commands {
		c.Wait()
		want, note := 7, "note: the server answers when something has changed"
		if i == 0 {
			want, note = 130, "note: the server has ended the stream of events: "
		}
		if status := c.ProcessState.ExitCode(); status != want || !strings.Contains(read(c.log), note) {
			t.Errorf("%q: status %d\n%s", c.Args[1:], status, read(c.log))
		}
	}
	seen := map[string]bool{}
	for line := range strings.Lines(read(all.out)) {
		_, state, _ := strings.Cut(line, " ") // without the time
		if seen[state] {
			t.Errorf("watch printed a state twice:\n%s", read(all.out))
		}
		seen[state] = true
	}
}
