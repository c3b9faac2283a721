package privsep

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"schedrestd/ipc"
	"schedrestd/proof"
	"schedrestd/security"
	program "schedrestd/worker"
)

// playProof runs the real proof, or one with death tests that show that the
// result is checked.
func playProof() int {
	name, act := os.Args[len(os.Args)-1], slices.Contains(os.Args, "act")
	switch part := os.Args[1]; {
	case part == "of another build":
		fmt.Fprintln(os.Stderr, `error: unknown command "prove"`)
		return 1
	case !act || name == "":
	case part == "lives", part == "lives but tells": // seals nothing, and says that it did
		fmt.Fprintln(os.Stderr, ipc.SaySealed+security.Sealed{}.Line())
		fmt.Fprintln(os.Stderr, "act: "+name)
		return 0
	case part == "gets another signal":
		fmt.Fprintln(os.Stderr, "act: "+name)
		p, _ := os.FindProcess(os.Getpid())
		_ = p.Kill()
		time.Sleep(time.Minute)
	case part == "does not die":
		time.Sleep(time.Hour)
	}
	status, _ := proof.Main(os.Args, program.CloseSandbox)
	return status
}

// TestDeathTests: a start in whose sandbox nobody dies fails, and says of which act.
func TestDeathTests(t *testing.T) {
	needSandbox(t)
	for _, part := range []string{"lives", "gets another signal", "does not die"} {
		t.Run(part, func(t *testing.T) {
			g := launch(t, plain(t), Config{Argv: argv{ipc.Worker: {part}}, StartLimit: time.Second})
			text, hint := g.failure()
			if !strings.Contains(text, "did not kill: kill of the parent (") || !strings.Contains(hint, "--check-confinement") {
				t.Errorf("error %q, hint %q", text, hint)
			}
		})
	}
}

// TestNoProgramOfOurs: what is in the place of the workers' program and knows nothing of a sandbox is no reason to serve without one.
func TestNoProgramOfOurs(t *testing.T) {
	text, hint := launch(t, plain(t), Config{Argv: argv{ipc.Worker: {"of another build"}}}).failure()
	if !strings.Contains(text, `the workers' sandbox is not proven: error: unknown command "prove" (exit status 1)`) || !strings.Contains(hint, "schedrestd-worker is of another build") || strings.Contains(hint, "audit") {
		t.Errorf("error %q, hint %q", text, hint)
	}
}

// TestDeathTestsInAudit: no process has to die, and the log says so.
func TestDeathTestsInAudit(t *testing.T) {
	needSandbox(t)
	g := serve(t, plain(t), Config{Switches: ipc.Switches{AuditConfinement: true}})
	g.await("system calls that should end a worker are only logged by the kernel (audit_confinement): that the sandbox kills is not proven", nil)
	g.mustGet("/pid")
}

// TestConfinementLine: one line says what is on and what is off.
func TestConfinementLine(t *testing.T) {
	needSandbox(t)
	g := serve(t, plain(t), Config{})
	r := g.await("confinement of the workers", nil)
	for _, want := range []string{"no_new_privs", "seccomp"} {
		if !strings.Contains(fmt.Sprint(r["on"]), want) {
			t.Errorf("%q is not on: %v", want, r)
		}
	}
	if n := g.count("confinement of the workers"); n != 1 {
		t.Errorf("said %d times", n)
	}
}
