package slurm

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// dryRunOptions are options beside scriptOptions, about the size of jobs: some
// start at once, some later, some never.
var dryRunOptions = strings.Split(strings.TrimSpace(`
-n 1
-n 8
-n 16
-n 17
-N 2
-N 1-4 -p fake
-N 5 -p fake
-n 200 -p fake
-n 16 -t 5
-n 16 -t 1-0
-t 2-0
--mem=3900M
--mem=4001M
--exclusive
-p hidden
-p nosuch
-A nosuch
-q nosuch
-C nosuch
--gres=gpu:tesla:2
--gres=gpu:tesla:3
--reservation=nosuch
-w node1 -n 2
--begin=now+1hour
--begin=now+1hour -n 16
--nice=100 -n 9
`), "\n")

// whatSbatchSays matches what sbatch --test-only prints.
var whatSbatchSays = regexp.MustCompile(`to start at (\S+).*? using (\d+) processors on nodes (\S*) in partition (\S+)`)

// whatSchedctlSays matches what schedctl submit --dry-run prints.
var whatSchedctlSays = regexp.MustCompile(`would start at (\S+), on (\d+) CPUs of (\S*) in the partition (\S+?)(?:;|\s|$)`)

// TestDryRun compares dry runs with sbatch --test-only, on a machine on which a job
// runs and another one waits: start, processors, nodes and partition, or the refusal.
// Nothing may be submitted. SLURM_CHANGES=all adds pairs of options.
func TestDryRun(t *testing.T) {
	m := useCluster(t)
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	must(t, m.install("schedctl"))
	token, err := m.createToken("alice")
	must(t, err)
	m.run(t, "alice", "sbatch", "--parsable", "-n8", "-t", "30", "--mem=100", "-o", "/dev/null", "--wrap", "sleep 600")
	m.run(t, "alice", "sbatch", "--parsable", "-n16", "-t", "20", "--mem=100", "-o", "/dev/null", "--wrap", "sleep 600")
	t.Cleanup(func() { m.run(t, "root", "scancel", "-u", "alice") })
	eventually(t, "the first job runs", func() bool {
		out, _ := m.try("root", "squeue", "-h", "-u", "alice", "-o", "%T")
		return strings.Contains(out, "RUNNING") && strings.Contains(out, "PENDING")
	})
	jobs := func() string { return m.run(t, "root", "squeue", "-h", "-a", "-t", "all", "-o", "%i") }
	before := jobs()
	try := func(says *regexp.Regexp, args ...string) (found []string, err error) {
		out, err := m.try("alice", append([]string{"sh", "-c", `exec "$0" "$@" 2>&1`}, args...)...)
		if err != nil {
			return nil, err
		}
		if found = says.FindStringSubmatch(out); found == nil {
			return nil, fmt.Errorf("unexpected output: %s", out)
		}
		return found[1:], nil
	}
	estimated, refused := 0, 0
	lines := slices.Concat(scriptOptions, dryRunOptions)
	if os.Getenv("SLURM_CHANGES") == "all" {
		for n := len(lines); len(lines) < 1000; {
			line := lines[rand.IntN(n)] + " " + lines[rand.IntN(n)]
			if !strings.Contains(line, "--hint") { // schedctl refuses it together with options that make sbatch ignore it
				lines = append(lines, line)
			}
		}
	}
	for _, line := range lines {
		script := fmt.Sprintf("#!/bin/sh\n#SBATCH %s\nexit 0\n", line)
		must(t, os.WriteFile(filepath.Join(m.root, "tmp/dryrun.sh"), []byte(script), 0o755))
		theirs, theirErr := try(whatSbatchSays, "sbatch", "--test-only", "/tmp/dryrun.sh")
		ours, err := try(whatSchedctlSays, "env", "SLURM_JWT="+token, "SCHED_URL=unix:"+gatewaySocket, "/opt/gateway/schedctl", "submit", "--dry-run", "/tmp/dryrun.sh")
		switch {
		case theirErr != nil && strings.Contains(theirErr.Error(), "unrecognized option"): // this release lacks it
			continue
		case theirErr != nil && err != nil:
			refused++
			continue
		case theirErr != nil || err != nil:
			t.Errorf("%s: sbatch %v, schedctl %v", line, theirErr, err)
			continue
		}
		estimated++
		if d := between(t, theirs[0], ours[0]); d < -5*time.Second || d > 5*time.Second || !slices.Equal(theirs[1:], ours[1:]) {
			t.Errorf("%s: sbatch %v, schedctl %v", line, theirs, ours)
		}
	}
	if after := jobs(); after != before {
		t.Errorf("jobs before: %s, after: %s", before, after)
	}
	t.Logf("%d dry runs: %d estimates, %d refused by both", len(lines), estimated, refused)
	if estimated < len(lines)/2 || refused < 10 {
		t.Error("too few were compared")
	}
}

// between returns the time from a to b, as the commands print times.
func between(t *testing.T, a, b string) time.Duration {
	t.Helper()
	from, err := time.Parse("2006-01-02T15:04:05", a)
	must(t, err)
	to, err := time.Parse("2006-01-02T15:04:05", b)
	must(t, err)
	return to.Sub(from)
}
