package jobs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"schedrestd/bundled/ctld/process"
	"schedrestd/integration/harness"
)

// TestJob checks a job's user, directory, environment and exit status.
func TestJob(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	u := harness.OrdinaryUser(t)
	userHeader := "X-SCHED-USER-NAME: " + u.Name
	id := l.Submit(`echo "$SCHED_JOB_ID $GREETING $PWD $(id -u) $(id -g) $HOME"; echo problem >&2; exit 7`,
		map[string]any{"environment": []string{"PATH=/usr/bin:/bin", "GREETING=good-day"}, "name": "seven", "tasks": 1, "memory_per_cpu": 50}, userHeader)
	a := l.AwaitEnd(id)
	if a.State() != "FAILED" || a.Get("jobs", 0, "exit_code", "return_code", "number") != 7.0 {
		t.Errorf("ended as %s: %v", a.State(), a.Get("jobs", 0, "exit_code"))
	}
	got := strings.Split(l.Output(t, id), "\n")
	if fields := strings.Fields(got[0]); len(fields) < 5 || fields[0] != fmt.Sprint(id) || fields[1] != "good-day" ||
		fields[2] != l.Work || fields[3] != fmt.Sprint(u.UID) || fields[4] != fmt.Sprint(u.GID) {
		t.Errorf("output %q", got)
	}
	if len(got) < 2 || got[1] != "problem" {
		t.Errorf("stderr is missing from %q", got)
	}
	st, err := os.Stat(filepath.Join(l.Work, fmt.Sprintf("sched-%d.out", id)))
	harness.Must(t, err)
	if owner := st.Sys().(*syscall.Stat_t); owner.Uid != u.UID || owner.Gid != u.GID {
		t.Errorf("output owned by %d:%d, want %d:%d", owner.Uid, owner.Gid, u.UID, u.GID)
	}
}

// TestSymlinkAttacks checks how root opens files that users name. Root must
// open such a file as the user who named it. Otherwise a symbolic link could
// make root write to a file to which the user may not write.
func TestSymlinkAttacks(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	u := harness.OrdinaryUser(t)
	l := harness.NewLab(t)
	userHeader := "X-SCHED-USER-NAME: " + u.Name
	rootFile := filepath.Join(l.Dir, "treasure")
	harness.Must(t, os.WriteFile(rootFile, []byte("gold"), 0o600))

	t.Run("output is a link to a file of root's", func(t *testing.T) {
		link := filepath.Join(l.Work, "trap")
		harness.Must(t, os.Symlink(rootFile, link))
		harness.Must(t, os.Lchown(link, int(u.UID), int(u.GID)))
		id := l.Submit("echo lead", map[string]any{"standard_output": link}, userHeader)
		if a := l.AwaitEnd(id); a.State() != "FAILED" {
			t.Errorf("ended as %s", a.State())
		}
		text, err := os.ReadFile(rootFile)
		if harness.Must(t, err); string(text) != "gold" {
			t.Errorf("root's file is now %q", text)
		}
	})
	t.Run("working directory is root's alone", func(t *testing.T) {
		id := l.Submit("echo inside >proof", map[string]any{"current_working_directory": filepath.Join(l.Dir, "state")}, userHeader)
		if a := l.AwaitEnd(id); a.State() != "FAILED" {
			t.Errorf("ended as %s", a.State())
		}
	})
	t.Run("working directory is a link to root's", func(t *testing.T) {
		link := filepath.Join(l.Work, "dir")
		harness.Must(t, os.Symlink(filepath.Join(l.Dir, "state"), link))
		id := l.Submit("echo inside >proof", map[string]any{"current_working_directory": link}, userHeader)
		if a := l.AwaitEnd(id); a.State() != "FAILED" {
			t.Errorf("ended as %s", a.State())
		}
	})
	for _, name := range []string{"state/proof", "state/sched-2.out", "state/sched-3.out"} {
		if _, err := os.Lstat(filepath.Join(l.Dir, name)); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}

// TestCancel checks that schedctl cancel ends all processes of a job.
func TestCancel(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	sleep := harness.UniqueSleep()
	id := l.Submit(fmt.Sprintf("setsid sleep %s &\nsleep %s", sleep, sleep), nil)
	harness.Eventually(t, "both sleeps run", func() bool { return harness.CountSleeps(t, sleep) == 2 })
	l.Schedctl(t, "cancel", fmt.Sprint(id))
	if a := l.AwaitEnd(id); a.State() != "CANCELLED" {
		t.Errorf("ended as %s", a.State())
	}
	if n := harness.CountSleeps(t, sleep); n != 0 {
		t.Errorf("%d of its processes are still running", n)
	}
}

// TestJobsOutliveController checks that jobs end correctly while their
// controller is down, and that the next controller reports them correctly.
// Package ctld tests this for a job that reaches its time limit, because there
// a minute is shorter.
func TestJobsOutliveController(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	hidden := harness.UniqueSleep()
	// The test waits until this job runs. If the job were still waiting for a
	// CPU when the controller was killed, the test would prove nothing.
	failingJob := l.Submit("echo began; sleep 2; echo done; exit 5", nil)
	harness.Eventually(t, "the first job runs", func() bool { return l.Job(failingJob).State() == "RUNNING" })
	forkingJob := l.Submit(fmt.Sprintf("setsid sleep %s &\nsleep 2; exit 0", hidden), nil)
	harness.Eventually(t, "all have been started", func() bool {
		return l.Job(forkingJob).State() != "PENDING" && harness.CountSleeps(t, hidden) == 1
	})
	l.Daemons["schedctld"].Kill()
	harness.Eventually(t, "the last job has ended without its controller", func() bool { return harness.CountSleeps(t, hidden) == 0 })
	l.Up(l.Ctld)
	for _, want := range []struct {
		id    int
		state string
		code  any
	}{{failingJob, "FAILED", 5.0}, {forkingJob, "COMPLETED", 0.0}} {
		a := l.AwaitEnd(want.id)
		if a.State() != want.state || want.code != nil && a.Get("jobs", 0, "exit_code", "return_code", "number") != want.code {
			t.Errorf("job %d: %s %v, want %s %v", want.id, a.State(), a.Get("jobs", 0, "exit_code"), want.state, want.code)
		}
	}
	if got := l.Output(t, failingJob); got != "began\ndone\n" {
		t.Errorf("output %q", got)
	}
}

// TestStepKilled checks that a job whose step was killed is reported as lost,
// and is not run again.
func TestStepKilled(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	sleep := harness.UniqueSleep()
	id := l.Submit("echo began >>once; sleep "+sleep, nil)
	harness.Eventually(t, "the job runs", func() bool { return harness.CountSleeps(t, sleep) == 1 })
	l.Daemons["schedctld"].Kill()
	for _, st := range harness.SleepProcesses(t, sleep) {
		step := parentOf(t, parentOf(t, st.PID)) // the parent of sleep is the script's shell, and the shell's parent is the step
		harness.Must(t, syscall.Kill(step, syscall.SIGKILL))
	}
	l.Up(l.Ctld)
	if a := l.AwaitEnd(id); a.State() != "NODE_FAIL" {
		t.Errorf("ended as %s", a.State())
	}
	harness.Eventually(t, "no process of it is left", func() bool { return harness.CountSleeps(t, sleep) == 0 })
	if text, err := os.ReadFile(filepath.Join(l.Work, "once")); err != nil || string(text) != "began\n" {
		t.Errorf("ran %q, %v", text, err)
	}
}

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	st, err := process.ReadStat(pid)
	harness.Must(t, err)
	return st.Parent
}
