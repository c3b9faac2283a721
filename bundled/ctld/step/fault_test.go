package step

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestFaultsBeforeTheScript checks that a job whose script could not be
// executed because of a full or read-only file system has the outcome
// NotStarted, so that the controller starts it again.
func TestFaultsBeforeTheScript(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	b := newFixture(t)
	for _, tt := range []struct {
		name, options, reason string
		flags                 uintptr
		change                func(spec *Spec, dir string)
	}{
		{"no inode for the output", "nr_inodes=1", "no space left on device", 0, func(s *Spec, dir string) { s.Output = Raw(dir + "/out") }},
		{"no inode for the errors", "nr_inodes=1", "no space left on device", 0, func(s *Spec, dir string) { s.Error = Raw(dir + "/out") }},
		{"read-only", "", "read-only file system", unix.MS_RDONLY, func(s *Spec, dir string) { s.WorkDir = Raw(dir) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(b.dir, strings.ReplaceAll(tt.name, " ", "-"))
			os.Mkdir(dir, 0o755)
			if err := unix.Mount("none", dir, "tmpfs", tt.flags, tt.options); err != nil {
				t.Skip("mount tmpfs:", err)
			}
			t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
			spec := b.spec("echo ran >" + b.work + "/ran")
			tt.change(spec, dir)
			if o := b.run(spec); o.State != NotStarted || !strings.Contains(o.Reason, tt.reason) {
				t.Errorf("%+v", o)
			}
			if _, err := os.Stat(b.work + "/ran"); err == nil {
				t.Error("the script has run")
			}
		})
	}
}

// TestReports checks which reports of the second stage make a job wait for
// another start, and which end it.
func TestReports(t *testing.T) {
	const exited, killed = 2 << 8, 9
	for _, tt := range []struct {
		name, report string
		status       uint32 // of the second stage
		ended        State  // of the job, from its status or from a signal to the job
		want         State
		reason       string
	}{
		{"executed", reportExec, exited, Failed, Failed, ""},
		{"executed and successful", reportExec, 0, Completed, Completed, ""},
		{"mistake in the job", reportJob + "no such file", 1 << 8, Failed, Failed, "no such file"},
		{"mistake found by execve", reportExec + reportJob + "no such file", 1 << 8, Failed, Failed, "no such file"},
		{"fault", "no space", 1 << 8, Failed, NotStarted, "no space"},
		{"fault found by execve", reportExec + "no memory", 1 << 8, Failed, NotStarted, "no memory"},
		{"fault, then cancelled", "no space", 1 << 8, Cancelled, Cancelled, ""},
		{"the runtime found no thread", "", exited, Failed, NotStarted, errNoReport.Error()},
		{"killed by the user", "", killed, Failed, Failed, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			w.WriteString(tt.report)
			w.Close()
			x := &watch{log: slog.New(slog.DiscardHandler), outcome: Outcome{Started: time.Now(), State: tt.ended, Status: tt.status}}
			x.completeOutcome(readReport(r))
			if x.outcome.State != tt.want || x.outcome.Reason != tt.reason {
				t.Errorf("%+v", x.outcome)
			}
		})
	}
}

// TestClaimReports checks what Start learns from the report of the first stage.
func TestClaimReports(t *testing.T) {
	for name, tt := range map[string]struct{ sent, want error }{
		"claimed":  {nil, nil},
		"too late": {ErrClaimed, ErrClaimed},
		"fault":    {&os.PathError{Op: "open", Path: "x", Err: unix.ENOSPC}, unix.ENOSPC},
	} {
		t.Run(name, func(t *testing.T) {
			var pipe strings.Builder
			sent := Claim{Format: claimFormat, Started: time.Now().Round(0)}
			if err := writeClaimReport(&pipe, sent, tt.sent); err != nil {
				t.Fatal(err)
			}
			got, err := readClaimReport(strings.NewReader(pipe.String()))
			if !errors.Is(err, tt.want) || err == nil && !got.Started.Equal(sent.Started) {
				t.Errorf("%+v, %v", got, err)
			}
			if _, err := readClaimReport(strings.NewReader(pipe.String()[:5])); err == nil {
				t.Error("half a report")
			}
		})
	}
}

// TestClaimNotSynced checks that a step that could not sync its claim leaves no
// claim, so that the job can be started again.
func TestClaimNotSynced(t *testing.T) {
	sync := syncDir
	t.Cleanup(func() { syncDir = sync })
	for failing := 1; failing <= 2; failing++ {
		home := filepath.Join(t.TempDir(), "1")
		if err := Prepare(home); err != nil {
			t.Fatal(err)
		}
		calls := 0
		syncDir = func(path string) error {
			if calls++; calls == failing {
				return unix.EIO
			}
			return sync(path)
		}
		if err := writeClaim(home, Claim{}); !errors.Is(err, unix.EIO) {
			t.Errorf("call %d: %v", failing, err)
		}
		if err := Withdraw(home); err != nil {
			t.Errorf("call %d: %v", failing, err)
		}
	}
}
