package privsep

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"schedrestd/ipc"
	"schedrestd/security"
)

// checkEnv has a parent check its confinement instead of serving.
const checkEnv = "PRIVSEP_TEST_CHECK"

// inspect has a process check, and gives what it printed and its exit status.
func inspect(t *testing.T, as user, c Config) (string, int) {
	t.Helper()
	c.Program, c.Setup.Limits = binary, testLimits
	if len(c.Argv) == 0 {
		c.Argv = []string{programName, "good"}
	}
	c.Switches.DisableUserCheck = as != nil || os.Geteuid() != 0
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary)
	cmd.Dir = "/"
	cmd.Env = []string{parentEnv + "=" + string(text), checkEnv + "=1", "GODEBUG=containermaxprocs=0"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// TestCheck: it tells of each part, has each act kill, and gives what remains to a worker of these means.
func TestCheck(t *testing.T) {
	needCage(t)
	out, status := inspect(t, plain(t), Config{Setup: ipc.Setup{Local: true, Munge: ipc.Munge{Socket: "/run/munge/s"}}})
	for _, want := range []string{"no_new_privs ", "system call filter ", "\nA worker was started", "  open /\n", "munged vouches", "it is the starter", "PID namespace"} {
		if !strings.Contains(out, want) {
			t.Errorf("it says nothing of %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "These did not:") || (status == 0) != strings.Contains(out, "All is on that a start without root can have.") {
		t.Errorf("exit status %d:\n%s", status, out)
	}
}

// TestCheckAsRoot: as root there is more, and what is off counts.
func TestCheckAsRoot(t *testing.T) {
	needRoot(t)
	out, status := inspect(t, nil, Config{User: "nobody", Group: "nogroup"})
	for _, want := range []string{"uid and gid of the worker's own", "root of their own                  on", "PID namespace                      on"} {
		if !strings.Contains(out, want) {
			t.Errorf("it says nothing of %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "Landlock                           on") && status != 0 {
		t.Errorf("exit status %d:\n%s", status, out)
	}
	for name, s := range map[string]security.Switches{
		"audit_confinement":    {AuditConfinement: true},
		"disable_unshare_sysv": {DisableUnshareSysV: true},
	} {
		out, status := inspect(t, nil, Config{User: "nobody", Group: "nogroup", Switches: s})
		if status != 1 || !strings.Contains(out, name) {
			t.Errorf("with %s: exit status %d:\n%s", name, status, out)
		}
	}
}

// TestCheckFinds: processes that live are told.
func TestCheckFinds(t *testing.T) {
	out, status := inspect(t, plain(t), Config{Argv: []string{programName, "lives but tells"}})
	if status != 1 || !strings.Contains(out, "These did not:") || !strings.Contains(out, "  bpf (exit status 0: ") {
		t.Errorf("exit status %d:\n%s", status, out)
	}
}
