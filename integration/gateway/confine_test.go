package gateway

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"schedrestd/integration/harness"
	"schedrestd/internal/socket/sockettest"
)

// TestCheckConfinement checks --check-confinement. It must try the sandbox that
// a gateway with the same options would use, print the result, and not listen.
func TestCheckConfinement(t *testing.T) {
	t.Parallel()
	dir := sockettest.Dir(t)
	conf, socket := filepath.Join(dir, "sched.conf"), filepath.Join(dir, "socket")
	harness.Must(t, os.WriteFile(conf, []byte("ClusterName=c\nSchedctldHost=127.0.0.1\nAuthInfo=socket=/nowhere\nAuthAltTypes=auth/jwt\n"), 0o644))
	check := func(env ...string) (string, int) {
		args := []string{"--check-confinement", "-f", conf}
		if os.Geteuid() == 0 {
			args = append(args, "-u", "nobody", "-g", "nogroup")
		}
		cmd := exec.Command(filepath.Join(harness.Bin, "schedrestd"), append(args, "unix:"+socket)...)
		cmd.Env = append(os.Environ(), append(env, "SCHED_JWT=daemon")...)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	out, status := check()
	if strings.Contains(out, "These were not killed:") || !strings.Contains(out, "Left to an attacker who captures a worker:") ||
		(status == 0) != strings.Contains(out, "\nAll confinement that a start ") || (status == 0) == strings.Contains(out, "error: ") {
		t.Errorf("exit status %d:\n%s", status, out)
	}
	out, status = check("SCHEDRESTD_SECURITY=audit_confinement")
	if status != 1 || !strings.Contains(out, "error: confinement: ") || !strings.Contains(out, "audit_confinement") {
		t.Errorf("with audit: exit status %d:\n%s", status, out)
	}
	if os.Geteuid() == 0 { // become_user: workers run as the connecting users; the command below has no LISTEN argument
		cmd := exec.Command(filepath.Join(harness.Bin, "schedrestd"), "--check-confinement", "-f", conf, "-a", "rest_auth/local")
		cmd.Env = append(os.Environ(), "SCHEDRESTD_SECURITY=become_user")
		if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), "users can stop, limit and kill their own worker") {
			t.Errorf("with become_user: %s", out)
		}
	}
	if _, err := os.Stat(socket); err == nil {
		t.Error("it listened")
	}
}
