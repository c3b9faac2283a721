package spawn

import (
	"cmp"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become/stage"
	"schedrestd/internal/errs"
	"schedrestd/internal/exitstatus"
	"schedrestd/internal/printable"
	"schedrestd/ipc"
	"schedrestd/security"
)

// The sandbox answers some forbidden operations with an error, so a worker can
// try these operations itself. For each other forbidden operation, the sandbox
// kills the process, so a separate process must try it and be killed. The
// parent starts one process in the same way as a worker. That process starts
// the separate processes (package proof), and reports the result to the parent.

const (
	maxProofLog   = 4 << 10         // how many bytes of the testing process's log are read
	proofTime     = 5 * time.Second // how long the testing process may take in addition to its death tests
	maxPageRounds = 40              // maximum number of rounds of death tests for ipc.ProvePage
)

// ProveSandbox proves that the sandbox kills processes that violate its rules.
// The parent calls it before the gateway serves a client. It returns the state
// of the closed sandbox.
func (s *Spawner) ProveSandbox() (enforced ipc.Ready, err error) {
	testSet := ipc.ProveSmoke
	switch {
	case !security.Sandboxed:
		s.Log.Warn("workers have almost no sandbox: this build is for measurements only")
		return enforced, nil
	case s.Switches.AuditConfinement:
		s.Log.Warn("forbidden system calls are only logged (audit_confinement); the sandbox was not verified")
		testSet = ipc.ProveClosed
	}
	return s.Prove(testSet, nil)
}

// Prove starts a process that closes the sandbox and runs a set of tests, such
// as ipc.ProveSmoke. Prove returns the state of the closed sandbox. The
// argument facts contains what the process can't find out itself. If the tests
// produce a page, the process writes it to out.
func (s *Spawner) Prove(testSet string, out *os.File, facts ...string) (ipc.Ready, error) {
	limit := s.StartLimit + proofTime
	if testSet == ipc.ProvePage {
		limit = maxPageRounds * s.StartLimit
	}
	argv := append(slices.Clone(s.Argv), ipc.ProveMode, strconv.Itoa(int(s.Sandbox)), testSet, s.StartLimit.String())
	p, err := s.Launch(Spec{Role: ipc.Worker, Program: s.Worker, Argv: append(argv, facts...), Threads: 1, Identity: s.Identity, Out: out})
	if err != nil {
		return ipc.Ready{}, err
	}
	defer p.Close()
	return p.awaitProof(s.Worker.Name(), limit)
}

// awaitProof waits until the process reports the result of its tests. If this
// takes longer than limit, awaitProof kills the process. A program of this
// build sends a report even if it can't close the sandbox. A program of another
// build may send none. In that case, awaitProof returns an error with the text
// that the program has written to its log, if any.
func (s *Child) awaitProof(program string, limit time.Duration) (enforced ipc.Ready, err error) {
	defer time.AfterFunc(limit, s.Kill).Stop()
	r, err := s.Channel.Receive()
	switch m := r.Message.(type) {
	case *ipc.Proven:
		if !m.OK {
			err = errs.New(errs.Kind(m.Class), "%s", printable.Text(m.Text)).WithHint("%s", printable.Text(m.Hint))
		}
		return m.Sandbox, err
	case nil: // the channel has ended
	default:
		err = ipc.Unhandled(m)
	}
	s.Kill()
	<-s.Exited
	_ = s.Log.SetReadDeadline(time.Now().Add(exitTimeout)) // another process may still hold the other end open
	output, _ := io.ReadAll(io.LimitReader(s.Log, maxProofLog))
	reason := printable.Text(cmp.Or(strings.TrimSpace(string(output)), err.Error()))
	if code := s.Status.ExitStatus(); code == stage.ExitIdentity || code == stage.ExitTarget {
		return enforced, explainStageError(program, reason)
	}
	return enforced, errs.New(errs.Denied, "the workers' sandbox was not verified: %s (%s)", reason, exitstatus.Describe(s.Status)).
		WithHint("%s may be from another build: install all programs from the same build with make install", program)
}

// explainStageError returns the error for a program that the stage could not
// execute. The stage wrote reason, which ends with the kernel's error.
func explainStageError(program, reason string) error {
	for _, cause := range []unix.Errno{unix.ENOEXEC, unix.EACCES, unix.EAGAIN} {
		if strings.HasSuffix(reason, cause.Error()) {
			return errs.Wrap(explainStart(program, cause), errs.Internal, "start %s", program)
		}
	}
	return errs.New(errs.Internal, "start %s: %s", program, reason)
}
