package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"schedrestd/ctld/process"
)

// A job is its user's: who it runs as, where, with which environment and how it ended.
func TestJob(t *testing.T) {
	l := newLab(t)
	u := someUser(t)
	as := "X-SCHED-USER-NAME: " + u.name
	id := l.submit(`echo "$SCHED_JOB_ID $GREETING $PWD $(id -u) $(id -g) $HOME"; echo problem >&2; exit 7`,
		map[string]any{"environment": []string{"PATH=/usr/bin:/bin", "GREETING=good-day"}, "name": "seven", "tasks": 1, "memory_per_cpu": 50}, as)
	a := l.end(id)
	if a.state() != "FAILED" || a.get("jobs", 0, "exit_code", "return_code", "number") != 7.0 {
		t.Errorf("ended as %s: %v", a.state(), a.get("jobs", 0, "exit_code"))
	}
	got := strings.Split(l.output(t, id), "\n")
	if fields := strings.Fields(got[0]); len(fields) < 5 || fields[0] != fmt.Sprint(id) || fields[1] != "good-day" ||
		fields[2] != l.work || fields[3] != fmt.Sprint(u.uid) || fields[4] != fmt.Sprint(u.gid) {
		t.Errorf("output %q", got)
	}
	if len(got) < 2 || got[1] != "problem" {
		t.Errorf("stderr is missing from %q", got)
	}
	st, err := os.Stat(filepath.Join(l.work, fmt.Sprintf("sched-%d.out", id)))
	must(t, err)
	if owner := st.Sys().(*syscall.Stat_t); owner.Uid != u.uid || owner.Gid != u.gid {
		t.Errorf("output owned by %d:%d, want %d:%d", owner.Uid, owner.Gid, u.uid, u.gid)
	}
}

// What a user names is opened as that user, so that a link can't make root write for him.
func TestTraps(t *testing.T) {
	needRoot(t)
	u := someUser(t)
	l := newLab(t)
	as := "X-SCHED-USER-NAME: " + u.name
	treasure := filepath.Join(l.Dir, "treasure")
	must(t, os.WriteFile(treasure, []byte("gold"), 0o600))

	t.Run("output is a link to a file of root's", func(t *testing.T) {
		trap := filepath.Join(l.work, "trap")
		must(t, os.Symlink(treasure, trap))
		must(t, os.Lchown(trap, int(u.uid), int(u.gid)))
		id := l.submit("echo lead", map[string]any{"standard_output": trap}, as)
		if a := l.end(id); a.state() != "FAILED" {
			t.Errorf("ended as %s", a.state())
		}
		text, err := os.ReadFile(treasure)
		if must(t, err); string(text) != "gold" {
			t.Errorf("the file of root's is now %q", text)
		}
	})
	t.Run("working directory is root's alone", func(t *testing.T) {
		id := l.submit("echo inside >proof", map[string]any{"current_working_directory": filepath.Join(l.Dir, "state")}, as)
		if a := l.end(id); a.state() != "FAILED" {
			t.Errorf("ended as %s", a.state())
		}
	})
	t.Run("working directory is a link to root's", func(t *testing.T) {
		trap := filepath.Join(l.work, "dir")
		must(t, os.Symlink(filepath.Join(l.Dir, "state"), trap))
		id := l.submit("echo inside >proof", map[string]any{"current_working_directory": trap}, as)
		if a := l.end(id); a.state() != "FAILED" {
			t.Errorf("ended as %s", a.state())
		}
	})
	for _, name := range []string{"state/proof", "state/sched-2.out", "state/sched-3.out"} {
		if _, err := os.Lstat(filepath.Join(l.Dir, name)); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}

// cancel takes all of a job with it.
func TestCancel(t *testing.T) {
	l := newLab(t)
	sleep := rare()
	id := l.submit(fmt.Sprintf("setsid sleep %s &\nsleep %s", sleep, sleep), nil)
	eventually(t, "both sleeps run", func() bool { return running(t, sleep) == 2 })
	l.command(t, "cancel", fmt.Sprint(id))
	if a := l.end(id); a.state() != "CANCELLED" {
		t.Errorf("ended as %s", a.state())
	}
	if n := running(t, sleep); n != 0 {
		t.Errorf("%d of its processes run on", n)
	}
}

// Jobs end rightly, and are told of rightly, while their controller is dead. The limit of one is a
// minute, the shortest there is, so this test takes that long; others run beside it.
func TestJobsOutliveController(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	long, hidden := rare(), rare()
	// "began" tells that the script runs; a job that waits for a cpu would prove nothing.
	ends := l.submit("echo began; sleep 2; echo done; exit 5", nil)
	eventually(t, "the first job runs", func() bool { return l.job(ends).state() == "RUNNING" })
	late := l.submit("sleep "+long, map[string]any{"time_limit": 1})
	forks := l.submit(fmt.Sprintf("setsid sleep %s &\nsleep 2; exit 0", hidden), nil)
	eventually(t, "all have been started", func() bool {
		return l.job(late).state() == "RUNNING" && l.job(forks).state() != "PENDING" && running(t, hidden) == 1
	})
	l.daemons["schedctld"].Kill()
	eventually(t, "the last job has ended without its controller", func() bool { return running(t, long) == 0 && running(t, hidden) == 0 })
	l.up(l.ctld)
	for _, want := range []struct {
		id    int
		state string
		code  any
	}{{ends, "FAILED", 5.0}, {late, "TIMEOUT", nil}, {forks, "COMPLETED", 0.0}} {
		a := l.end(want.id)
		if a.state() != want.state || want.code != nil && a.get("jobs", 0, "exit_code", "return_code", "number") != want.code {
			t.Errorf("job %d: %s %v, want %s %v", want.id, a.state(), a.get("jobs", 0, "exit_code"), want.state, want.code)
		}
	}
	if got := l.output(t, ends); got != "began\ndone\n" {
		t.Errorf("output %q", got)
	}
}

// A job whose step was killed is lost with it: reported, not run again.
func TestStepKilled(t *testing.T) {
	l := newLab(t)
	sleep := rare()
	id := l.submit("echo began >>once; sleep "+sleep, nil)
	eventually(t, "the job runs", func() bool { return running(t, sleep) == 1 })
	l.daemons["schedctld"].Kill()
	for _, st := range named(t, sleep) {
		step := parentOf(t, parentOf(t, st.PID)) // sleep, the script's shell, the step
		must(t, syscall.Kill(step, syscall.SIGKILL))
	}
	l.up(l.ctld)
	if a := l.end(id); a.state() != "NODE_FAIL" {
		t.Errorf("ended as %s", a.state())
	}
	eventually(t, "nothing of it is left", func() bool { return running(t, sleep) == 0 })
	if text, err := os.ReadFile(filepath.Join(l.work, "once")); err != nil || string(text) != "began\n" {
		t.Errorf("ran %q, %v", text, err)
	}
}

var rareCount = time.Now().UnixNano() % 100_000

// rare is a time to sleep that names the processes of one test in the list of all.
func rare() string {
	rareCount++
	return fmt.Sprintf("%d.%05d", 3600, rareCount)
}

// named are the processes that sleep for that rare time.
func named(t *testing.T, sleep string) []process.Stat {
	t.Helper()
	all, err := process.All()
	must(t, err)
	var found []process.Stat
	for _, st := range all {
		line, err := os.ReadFile("/proc/" + strconv.Itoa(st.PID) + "/cmdline")
		if err == nil && string(line) == "sleep\x00"+sleep+"\x00" {
			found = append(found, st)
		}
	}
	return found
}

func running(t *testing.T, sleep string) int { return len(named(t, sleep)) }

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	st, err := process.ReadStat(pid)
	must(t, err)
	return st.Parent
}
