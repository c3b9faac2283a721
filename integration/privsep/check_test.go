package privsep

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// inspect runs Check in a process of its own, as --check-confinement does, and
// returns the output and the exit status.
func inspect(t *testing.T, as user, c testConfig) (string, int) {
	t.Helper()
	c.Mode, c.Argv = ipc.ModeCheck, arguments(c)
	if c.Setup.Settings == nil {
		c.Setup.Settings = packed(work.Setup{}).Settings
	}
	c.Switches.DisableUserCheck = c.Switches.DisableUserCheck || as != nil || os.Geteuid() != 0
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(parentProgram)
	cmd.Dir = "/"
	cmd.Env = []string{parentEnv + "=" + string(text), "GODEBUG=containermaxprocs=0"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func uid(as user) int {
	if as == nil {
		return os.Geteuid()
	}
	return int(as.Uid)
}

// TestCheck checks the page that Check prints. The page must name each part of
// the confinement, report that the process of each death test was killed, and
// list what a captured worker can still do.
func TestCheck(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	out, status := inspect(t, plainUser(t), testConfig{DeathTests: true, Setup: packed(work.Setup{Setup: ipc.Setup{Local: true}, Munge: work.Munge{Socket: "/run/munge/s"}})})
	for _, want := range []string{"no_new_privs ", "system call filter ", "\nA worker was started", "  open /\n", "credentials of MUNGE or auth/slurm", "processes of the user who started", "PID namespace",
		fmt.Sprintf("processes of uid %d outside the sandbox, which can stop, limit and kill it", uid(plainUser(t))), "memory and CPU time"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
	if strings.Contains(out, "These were not killed:") || (status == 0) != strings.Contains(out, "\nAll confinement that a start without root can have") {
		t.Errorf("exit status %d:\n%s", status, out)
	}
}

// TestCheckAsRoot checks that a gateway started as root has protections that
// one started without root lacks. If a protection is switched off, the exit
// status must be 1, and the page must name the setting.
func TestCheckAsRoot(t *testing.T) {
	t.Parallel()
	needRoot(t)
	out, status := inspect(t, nil, testConfig{DeathTests: true, Service: identityOf("nobody", "nogroup", "")})
	for _, want := range []string{"processes of uid 65534 outside the sandbox, which can stop", "the worker's own uid and gid", "root of their own                  on", "PID namespace                      on"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
	if hasLandlock(out) && status != 0 {
		t.Errorf("exit status %d:\n%s", status, out)
	}
	for name, s := range map[string]ipc.Switches{
		"audit_confinement":     {AuditConfinement: true},
		"disable_unshare_sysv":  {DisableUnshareSysV: true},
		"disable_unshare_files": {DisableUnshareFiles: true},
	} {
		out, status := inspect(t, nil, testConfig{Service: identityOf("nobody", "nogroup", ""), Switches: s})
		if status != 1 || !strings.Contains(out, name) {
			t.Errorf("with %s: exit status %d:\n%s", name, status, out)
		}
	}
}

// hasLandlock reports whether a page says that the kernel has Landlock. Without it, the
// page names more that is missing, and a start is refused for more reasons.
func hasLandlock(page string) bool {
	return strings.Contains(page, "Landlock                           on")
}

// TestCheckUnfit checks the page with disable_user_check. If the worker has its
// own uid and gid, the page must not name the setting. If the worker runs as
// root, the page must report that the worker does not have its own uid and gid.
func TestCheckUnfit(t *testing.T) {
	t.Parallel()
	needRoot(t)
	const row = "the worker's own uid and gid       "
	on, status := inspect(t, nil, testConfig{Service: identityOf("nobody", "nogroup", ""), Switches: ipc.Switches{DisableUserCheck: true}})
	if hasLandlock(on) != (status == 0) || !strings.Contains(on, row+"on") || strings.Contains(on, "disable_user_check") {
		t.Errorf("switched off where it would have let the start through: exit status %d:\n%s", status, on)
	}
	off, status := inspect(t, nil, testConfig{Switches: ipc.Switches{DisableUserCheck: true}})
	for _, want := range []string{row + "off  disable_user_check: would serve as root (uid 0)\n", "everything that root or SchedUser may do", "gid are off: would serve as root"} {
		if status != 1 || !strings.Contains(off, want) {
			t.Errorf("exit status %d, without %q:\n%s", status, want, off)
		}
	}
}

// TestCheckSaysWhy checks that the page shows the kernel's error if the user
// may not create a user namespace.
func TestCheckSaysWhy(t *testing.T) {
	t.Parallel()
	needRoot(t)
	text, err := json.Marshal(testConfig{Mode: ipc.ModeCheck, Argv: arguments(testConfig{}),
		Setup: packed(work.Setup{Limits: testLimits}), Switches: ipc.Switches{DisableUserCheck: true}})
	must(t, err)
	ids := []syscall.SysProcIDMap{{Size: 1 << 16}}
	for name, tt := range map[string]struct {
		script, reason string
		space          uintptr
	}{
		"none are left":      {"echo 0 >/proc/sys/user/max_user_namespaces", "no space left on device", unix.CLONE_NEWUSER},
		"their maps are not": {"mount -o remount,bind,ro /proc", "read-only file system", unix.CLONE_NEWNS},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("/bin/sh", "-c", tt.script+` && exec setpriv --reuid 31277 --regid 31277 --clear-groups "$0"`, parentProgram)
			cmd.Dir = "/"
			cmd.Env = []string{parentEnv + "=" + string(text), "GODEBUG=containermaxprocs=0", "PATH=/usr/bin:/bin"}
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: tt.space}
			if tt.space == unix.CLONE_NEWUSER {
				cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings, cmd.SysProcAttr.GidMappingsEnableSetgroups = ids, ids, true
			} else {
				cmd.SysProcAttr.Unshareflags, cmd.SysProcAttr.Cloneflags = tt.space, 0 // with Unshareflags, package syscall makes the child's mounts private, so this process's mounts stay unchanged
			}
			out, _ := cmd.CombinedOutput()
			for _, want := range []string{"user namespace                     off  " + tt.reason + "\n", "network namespace                  off  without a user namespace\n",
				"PID namespace                      off  without a user namespace: requires a start as root\n", "\nSome confinement", "is off: " + tt.reason,
				"the machine's network, through a hole", "signals to its user's other processes"} {
				if !strings.Contains(string(out), want) {
					t.Errorf("%q is missing:\n%s", want, out)
				}
			}
		})
	}
}

// TestCheckFinds checks that the page names each death test whose process was
// not killed.
func TestCheckFinds(t *testing.T) {
	t.Parallel()
	out, status := inspect(t, plainUser(t), testConfig{Argv: argv{ipc.Worker: {"survives and serves"}}})
	if status != 1 || !strings.Contains(out, "These were not killed:") || !strings.Contains(out, "  bpf (exit status 0: ") {
		t.Errorf("exit status %d:\n%s", status, out)
	}
}

// TestCheckRequires runs Check with require_confinement while a part of the
// confinement is off. Check must return the error with which a gateway with
// these settings would refuse to start.
func TestCheckRequires(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	const ends = "require_confinement: parts of the confinement are not available: "
	onePartOff := testConfig{Switches: ipc.Switches{RequireConfinement: true, DisableUnshareSysV: true}}
	if os.Geteuid() == 0 {
		onePartOff.Service = identityOf("nobody", "nogroup", "")
	}
	out, status := inspect(t, nil, onePartOff)
	if status != 1 || !strings.Contains(out, "such a start fails") || !strings.Contains(out, "error: "+ends) || !strings.Contains(out, "Left to an attacker") {
		t.Errorf("without a part: exit status %d:\n%s", status, out)
	}
	checkErr := out[strings.Index(out, ends):]
	if text, hint := launch(t, nil, onePartOff).failure(); hasLandlock(out) && strings.TrimSpace(checkErr) != text || !strings.Contains(text, "IPC namespace (disable_unshare_sysv)") || !strings.Contains(hint, "--check-confinement") {
		t.Errorf("the start ends with %q, hint %q; the check with %q", text, hint, checkErr)
	}
	if os.Geteuid() != 0 {
		return
	}
	if text, _ := launch(t, plainUser(t), testConfig{Switches: ipc.Switches{RequireConfinement: true}}).failure(); !strings.HasPrefix(text, ends) || !strings.Contains(text, "dropping of supplementary groups") {
		t.Errorf("in a group that can't be dropped: %q", text)
	}
	all := testConfig{Service: identityOf("nobody", "nogroup", ""), Switches: ipc.Switches{RequireConfinement: true}}
	out, status = inspect(t, nil, all)
	if hasLandlock(out) != (status == 0) {
		t.Errorf("as root: exit status %d:\n%s", status, out)
	}
	all.Switches.AuditConfinement = true // the parent checks this too, because schedrestd-config need not have checked the Config
	if text, _ := launch(t, nil, all).failure(); !strings.Contains(text, "the system call filter only logs (audit_confinement), and require_confinement is set") {
		t.Errorf("a filter that kills no process: %q", text)
	}
}

// TestCheckKeeper checks that, if the configuration has a key, Check also
// starts a keeper and reports on it.
func TestCheckKeeper(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	dir := t.TempDir()
	c := testConfig{Setup: ipc.Setup{JWT: true}}
	c.Tokens.Key = filepath.Join(dir, "jwt.key")
	if err := os.WriteFile(c.Tokens.Key, []byte("a key that is as long as it has to be"), 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		c.Service = identityOf("nobody", "nogroup", "")
	} else {
		c.Service = identityOf("", "", strconv.Itoa(os.Geteuid())) // the user who owns the key file
	}
	out, _ := inspect(t, nil, c)
	own := fmt.Sprintf("A keeper was started as uid %d.", os.Geteuid())
	if !strings.Contains(out, "\nA keeper was started as uid ") || strings.Contains(out, own) != (os.Geteuid() != 0) || strings.Contains(out, "as uid 65534.") {
		t.Errorf("the keeper is missing:\n%s", out)
	}
	if err := os.WriteFile(c.Tokens.Key, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, status := inspect(t, nil, c); status != 1 || !strings.Contains(out, "error: key file ") {
		t.Errorf("a key that no keeper keeps: exit status %d:\n%s", status, out)
	}
}
