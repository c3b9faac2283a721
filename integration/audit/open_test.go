package audit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/integration/harness"
)

// A fault makes the audit log's file unusable.
type fault struct {
	name      string
	env       string
	writable  bool                           // lines can be written, except while an auditor is being replaced
	uncertain bool                           // a line whose writing failed may be in the file
	prepare   func(t *testing.T, dir string) // called before anything is in dir
	begin     func(t *testing.T, l *harness.Lab, dir string)
	end       func(t *testing.T, dir string)
}

var faults = []fault{
	{name: "full disk", prepare: mountFull, begin: func(t *testing.T, _ *harness.Lab, dir string) { fill(t, dir) }, end: empty},
	{name: "failing device", env: "SCHEDRESTD_AUDIT_SYNC=yes", uncertain: true, prepare: mountFailing,
		begin: func(t *testing.T, _ *harness.Lab, dir string) { fill(t, below(dir)) },
		end:   func(t *testing.T, dir string) { empty(t, below(dir)) }},
	{name: "killed auditor", writable: true, prepare: func(*testing.T, string) {}, begin: killAuditor, end: func(*testing.T, string) {}},
	{name: "full disk and killed auditor", prepare: mountFull, begin: func(t *testing.T, l *harness.Lab, dir string) { fill(t, dir); killAuditor(t, l, dir) }, end: empty},
}

func ballast(dir string) string { return filepath.Join(dir, "ballast") }

// mountSmall mounts a small file system at dir.
func mountSmall(t *testing.T, dir, size string) {
	t.Helper()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		t.Skipf("needs a small file system: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
}

// mountFull mounts a file system at dir that fill can fill.
func mountFull(t *testing.T, dir string) { mountSmall(t, dir, "64k") }

// fill fills the file system.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(ballast(dir))
	harness.Must(t, err)
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
}

func empty(t *testing.T, dir string) {
	t.Helper()
	harness.Must(t, os.Remove(ballast(dir)))
}

// mountFailing mounts a file system at dir that is on a loop device. The file of
// this device is on a small file system, too: when that is full, the device
// can't store blocks that it has not stored before.
func mountFailing(t *testing.T, dir string) {
	t.Helper()
	run := func(name string, args ...string) string {
		t.Helper()
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			t.Skipf("needs a loop device and ext4: %s: %v: %s", name, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	below := below(dir)
	harness.Must(t, os.Mkdir(below, 0o700))
	mountSmall(t, below, "1m")
	image := filepath.Join(below, "image")
	harness.Must(t, os.WriteFile(image, nil, 0o600))
	harness.Must(t, os.Truncate(image, 8<<20))
	run("mkfs.ext4", "-q", "-N", "16", "-O", "^has_journal", image)
	device := run("losetup", "-f", "--show", image)
	t.Cleanup(func() { _ = exec.Command("losetup", "-d", device).Run() })
	run("mount", "-o", "errors=continue", device, dir)
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	harness.Must(t, os.Chmod(dir, 0o700))
}

// below returns the directory with the file of mountFailing's device.
func below(dir string) string { return dir + ".device" }

// killAuditor kills the auditor, and waits for the next one.
func killAuditor(t *testing.T, l *harness.Lab, _ string) {
	t.Helper()
	pid := l.Daemons["schedrestd"].PID()
	victim := harness.DescendantNamed(t, pid, "schedrestd-audi")
	if victim == 0 {
		t.Fatal("there is no auditor")
	}
	harness.Must(t, syscall.Kill(victim, syscall.SIGKILL))
	harness.Eventually(t, "the next auditor", func() bool {
		next := harness.DescendantNamed(t, pid, "schedrestd-audi")
		return next != 0 && next != victim
	})
}

// TestAuditOpen checks SCHEDRESTD_AUDIT_FAIL=open during faults. Changes must go
// on. The gateway must log the beginning of the fault, its end, and how many
// lines are lost. Afterwards the audit log must be complete again, and have all
// lines that are not lost.
func TestAuditOpen(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			var log string
			l := harness.NewLab(t, harness.WithAuditLog(&log, "SCHEDRESTD_AUDIT_FAIL=open", f.env), func(*harness.Lab) { f.prepare(t, filepath.Dir(log)) })
			dir := filepath.Dir(log)
			c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // old workers make no changes after the auditor was killed
			var jobs []string
			submit := func() bool {
				t.Helper()
				a, err := l.TryRequest(c, "POST", "/sched/"+harness.Version+"/job/submit", l.JobRequest("true", map[string]any{"hold": true}))
				harness.Must(t, err)
				if a.Status == http.StatusServiceUnavailable {
					return false
				}
				jobs = append(jobs, fmt.Sprint(a.Want(t, http.StatusOK).Get("job_id")))
				return true
			}
			submitAll := func(n int) {
				t.Helper()
				for range n {
					if !submit() {
						t.Error("a change was refused")
					}
				}
			}
			submitAll(5)
			harness.Eventually(t, "both lines of each change are in the audit log", func() bool {
				text, err := os.ReadFile(log)
				harness.Must(t, err)
				return strings.Count(string(text), "\n") == 10
			})
			f.begin(t, l, dir)
			harness.Eventually(t, "changes are made", submit)
			const failed = `level=ERROR msg="audit log not writable; changes are made unrecorded (SCHEDRESTD_AUDIT_FAIL=open)"`
			if !f.writable {
				l.Eventually(t, "the failure is in the log", func() bool { submitAll(1); return strings.Contains(l.Logged(), failed) })
			}
			submitAll(20)
			f.end(t, dir)
			lost := 0
			if !f.writable {
				recovered := regexp.MustCompile(`level=WARN msg="audit log writable again" lines_lost=(\d+)`)
				l.Eventually(t, "the recovery is in the log", func() bool { submitAll(1); return recovered.MatchString(l.Logged()) })
				for line := range strings.Lines(l.Logged()) {
					if _, cause, found := strings.Cut(line, failed); found {
						t.Log(strings.TrimSpace(cause))
					}
				}
				all := recovered.FindAllStringSubmatch(l.Logged(), -1)
				for _, m := range all {
					n, _ := strconv.Atoi(m[1])
					lost += n
				}
				if n := strings.Count(l.Logged(), failed); n != len(all) {
					t.Errorf("the log has %d failures and %d recoveries", n, len(all))
				}
			}
			complete := len(jobs)
			submitAll(5)
			checkOpenLog(t, log, f, jobs, complete, lost)
		})
	}
}

// checkOpenLog compares the audit log with the jobs that were submitted. Those
// from the index complete on were submitted after the fault.
func checkOpenLog(t *testing.T, log string, f fault, jobs []string, complete, lost int) {
	t.Helper()
	intents, outcomes, torn := map[string]bool{}, map[string]string{}, 0
	results := map[string]int{}
	harness.Eventually(t, "the outcome of the last change is in the audit log", func() bool {
		clear(intents)
		clear(outcomes)
		clear(results)
		torn = 0
		raw, err := os.ReadFile(log)
		harness.Must(t, err)
		for text := range strings.Lines(string(raw)) {
			var line auditLine
			if json.Unmarshal([]byte(text), &line) != nil {
				torn++
			} else if line.Event == "intent" {
				intents[line.Change] = true
			} else {
				outcomes[line.Change] = line.Worker.Result
			}
		}
		for _, id := range outcomes {
			results[id]++
		}
		return results[jobs[len(jobs)-1]] > 0
	})
	t.Logf("%d changes, %d intents, %d outcomes, %d partial lines, %d lines lost", len(jobs), len(intents), len(outcomes), torn, lost)
	if torn > 2 {
		t.Errorf("%d partial lines", torn)
	}
	for _, id := range slices.Concat(jobs[:5], jobs[complete:]) {
		if results[id] != 1 {
			t.Errorf("job %s has %d outcomes", id, results[id])
		}
	}
	for change, id := range outcomes {
		if i := slices.Index(jobs, id); i < 0 || !intents[change] && (f.writable || i < 5 || i >= complete) {
			t.Errorf("the outcome %s, of job %q, has no intent", change, id)
		}
	}
	// Outcomes are written as soon as the file is writable again, unless their
	// auditor was killed.
	killed := 0
	if strings.Contains(f.name, "killed") {
		killed = 2
	}
	if len(outcomes) < len(jobs)-killed {
		t.Errorf("%d of %d changes have outcomes", len(outcomes), len(jobs))
	}
	switch missing := len(jobs) - len(intents); {
	case f.uncertain && (lost == 0 || lost < missing), f.writable && missing != 0, !f.uncertain && killed == 0 && lost != missing:
		t.Errorf("%d intents are missing, and the log says that %d lines are lost", missing, lost)
	}
}
