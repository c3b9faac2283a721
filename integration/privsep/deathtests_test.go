package privsep

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"schedrestd/gateway/proof"
	program "schedrestd/gateway/worker"
	"schedrestd/ipc"
	"schedrestd/security/sandbox"
)

// noDeathTests is the last argument of a worker's program in tests without
// death tests. In these tests the parent only checks, before it serves, that
// the sandbox can be entered, and --check-confinement runs only fewDeathTests.
const noDeathTests = "no death tests"

// fewDeathTests are enough for a test of what --check-confinement prints.
var fewDeathTests = []string{"bpf", "mount"}

// playProof runs the program with the death tests: either the real one, or one
// that reports false results, which the parent must not trust.
func playProof() int {
	name, isDeathTest := os.Args[len(os.Args)-1], slices.Contains(os.Args, "death-test")
	switch part := os.Args[1]; {
	case part == "of another build":
		fmt.Fprintln(os.Stderr, `error: unknown command "prove"`)
		return 1
	case part == "tests nothing":
		time.Sleep(time.Hour)
	case !isDeathTest || name == "":
	case part == "survives", part == "survives and serves": // restricts nothing, and reports that it did
		fmt.Fprintln(os.Stderr, "sandbox: filter false audit false landlock 0 denies 0")
		fmt.Fprintln(os.Stderr, "death test: "+name)
		return 0
	case part == "is killed by another signal":
		fmt.Fprintln(os.Stderr, "sandbox: filter true audit false landlock 0 denies 0")
		fmt.Fprintln(os.Stderr, "death test: "+name)
		p, _ := os.FindProcess(os.Getpid())
		_ = p.Kill()
		time.Sleep(time.Minute)
	case part == "hangs":
		time.Sleep(time.Hour)
	}
	args, pageSet := slices.Clone(os.Args), sandbox.DeathTests()
	if at := slices.Index(args, ipc.ProveMode); at > 0 && args[at-1] == noDeathTests {
		pageSet = fewDeathTests
		if args[at+2] == ipc.ProveSmoke {
			args[at+2] = ipc.ProveClosed
		}
	}
	status, _ := proof.Main(args, program.CloseSandbox, pageSet)
	return status
}

// TestDeathTests checks that a start fails if the sandbox does not kill the
// process of a death test, and that the error names the test.
func TestDeathTests(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	for part, limit := range map[string]time.Duration{"survives": 0, "is killed by another signal": 0, "hangs": hangLimit} {
		t.Run(part, func(t *testing.T) {
			g := launch(t, plainUser(t), testConfig{Argv: argv{ipc.Worker: {part}}, DeathTests: true, StartLimit: limit})
			text, hint := g.failure()
			if !strings.Contains(text, "did not kill: kill of the parent (") || !strings.Contains(hint, "--check-confinement") {
				t.Errorf("error %q, hint %q", text, hint)
			}
		})
	}
}

// TestNoProgramOfOurs checks that a start fails if the workers' program was
// replaced by a program that sets up no sandbox.
func TestNoProgramOfOurs(t *testing.T) {
	t.Parallel()
	text, hint := launch(t, plainUser(t), testConfig{Argv: argv{ipc.Worker: {"of another build"}}, DeathTests: true}).failure()
	if !strings.Contains(text, `the workers' sandbox was not verified: error: unknown command "prove" (exit status 1)`) || !strings.Contains(hint, "schedrestd-worker may be from another build") || strings.Contains(hint, "audit") {
		t.Errorf("error %q, hint %q", text, hint)
	}
}

// TestNoDeathTests checks that a start fails if the process that makes the death
// tests hangs.
func TestNoDeathTests(t *testing.T) {
	t.Parallel()
	text, _ := launch(t, plainUser(t), testConfig{Argv: argv{ipc.Worker: {"tests nothing"}}, DeathTests: true, StartLimit: time.Second}).failure()
	if !strings.Contains(text, "the workers' sandbox was not verified: ") || !strings.Contains(text, "killed") {
		t.Errorf("error %q", text)
	}
}

// TestDeathTestsInAudit checks a start with a filter that only logs. The start
// must succeed although no process is killed, and the log must say that the
// sandbox was not verified.
func TestDeathTestsInAudit(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	g := serve(t, plainUser(t), testConfig{DeathTests: true, Switches: ipc.Switches{AuditConfinement: true}})
	g.await("forbidden system calls are only logged (audit_confinement); the sandbox was not verified", nil)
	g.mustGet("/pid")
}

// TestConfinementLine checks that one line of the log lists which protections
// are on and which are off.
func TestConfinementLine(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	g := serve(t, plainUser(t), testConfig{DeathTests: true})
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
