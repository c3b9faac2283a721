package privsep

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"schedrestd/ipc"
	"schedrestd/security"
	cage "schedrestd/security/seal"
	program "schedrestd/worker"
)

// isAct tells whether this process is one that is to die.
func isAct() bool { _, ok := program.ActArgs(os.Args); return ok }

// playAct is the real one, or one that shows that the parent looks.
func playAct() int {
	args, _ := program.ActArgs(os.Args)
	switch os.Args[1] {
	case "of another build":
		fmt.Fprintln(os.Stderr, `error: unknown command "act"`)
		return 1
	case "lives but tells":
		if args[1] == "" {
			break
		}
		fallthrough
	case "lives": // seals nothing, and says that it did
		fmt.Fprintln(os.Stderr, ipc.SaySealed+security.Sealed{}.Line())
		fmt.Fprintln(os.Stderr, ipc.SayAct+args[1])
		return 0
	case "dies of another signal":
		fmt.Fprintln(os.Stderr, ipc.SayAct+args[1])
		p, _ := os.FindProcess(os.Getpid())
		_ = p.Kill()
		time.Sleep(time.Minute)
	case "does not die":
		time.Sleep(time.Hour)
	}
	return program.Act(args)
}

// TestHandful: what is done at each start is among what there is.
func TestHandful(t *testing.T) {
	for _, name := range handful {
		if !slices.Contains(cage.Acts(), name) {
			t.Errorf("no act is called %q", name)
		}
	}
}

// TestSacrifices: a start in whose cage nobody dies fails, and says of which act.
func TestSacrifices(t *testing.T) {
	needCage(t)
	for _, part := range []string{"lives", "dies of another signal", "does not die"} {
		t.Run(part, func(t *testing.T) {
			g := launch(t, plain(t), Config{Argv: []string{programName, part}, StartLimit: time.Second})
			text, hint := g.failure()
			if !strings.Contains(text, "did not kill who did it: "+handful[0]) || !strings.Contains(hint, "--check-confinement") {
				t.Errorf("error %q, hint %q", text, hint)
			}
		})
	}
}

// TestNoProgramOfOurs: what is in the place of the workers' program and knows nothing of a cage is no reason to serve without one.
func TestNoProgramOfOurs(t *testing.T) {
	text, hint := launch(t, plain(t), Config{Argv: []string{programName, "of another build"}}).failure()
	if !strings.Contains(text, `the workers' cage can't be closed: error: unknown command "act" (exit status 1)`) || !strings.Contains(hint, binary+" is of another build") || strings.Contains(hint, "audit") {
		t.Errorf("error %q, hint %q", text, hint)
	}
}

// TestSacrificesInAudit: nobody has to die, and that is said.
func TestSacrificesInAudit(t *testing.T) {
	needCage(t)
	g := serve(t, plain(t), Config{Switches: ipc.Switches{AuditConfinement: true}})
	g.await("what the workers' cage should kill for is logged by the kernel, and kills nobody (audit_confinement): that it kills is not proven", nil)
	g.mustGet("/pid")
}

// TestConfinementLine: one line says what is on and what is off.
func TestConfinementLine(t *testing.T) {
	needCage(t)
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
