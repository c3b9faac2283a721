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
	"schedrestd/errs"
	"schedrestd/exitstatus"
	"schedrestd/ipc"
	"schedrestd/printable"
	"schedrestd/security"
)

// A worker can itself try the operations that the sandbox answers with an
// error. Other operations make the sandbox kill the process, so each of them is
// tried by a separate process that must be killed. The parent starts one
// process in the same way as a worker. This process starts the others (package
// proof) and reports the result to the parent.

const (
	mostSaid  = 4 << 10         // how many bytes of that process's log are read
	proofTime = 5 * time.Second // time that it may take in addition to its death tests
	pageCases = 40              // the page has at most so many rounds of death tests
)

// ProveDeath proves that the sandbox kills processes that violate it. It runs
// before the gateway serves a client, and returns how the sandbox is closed.
func (s *Spawner) ProveDeath() (sealed security.Sealed, err error) {
	what := ipc.ProveSmoke
	switch {
	case !security.Sandboxed:
		s.Log.Warn("workers have almost no sandbox: this build is for measurements only")
		return sealed, nil
	case s.Switches.AuditConfinement:
		s.Log.Warn("forbidden system calls are only logged (audit_confinement); the sandbox was not verified")
		what = ipc.ProveClosed
	}
	return s.Prove(what, nil)
}

// Prove starts a process that closes the sandbox and runs a set of tests; the
// argument what names the set. Prove returns how the sandbox is closed. The
// argument facts has what the process can't find out itself. If the tests
// produce a page, the process writes it to out.
func (s *Spawner) Prove(what string, out *os.File, facts ...string) (security.Sealed, error) {
	limit := s.StartLimit + proofTime
	if what == ipc.ProvePage {
		limit = pageCases * s.StartLimit
	}
	argv := append(slices.Clone(s.Argv), ipc.ProveMode, strconv.Itoa(int(s.Seal)), what, s.StartLimit.String())
	p, err := s.Launch(Spec{Role: ipc.Worker, Program: s.Worker, Argv: append(argv, facts...), Threads: 1, Who: s.Identity, Out: out})
	if err != nil {
		return security.Sealed{}, err
	}
	defer p.Close()
	return p.proven(s.Worker.Name(), limit)
}

// proven waits until the process reports the result of its tests. It kills a
// process that takes longer than limit. A program of this build sends a report
// even if it can't close the sandbox. A program of another build may send none.
// In that case proven returns an error with the text that the program has
// written to its log, if any.
func (s *Started) proven(program string, limit time.Duration) (sealed security.Sealed, err error) {
	late := time.AfterFunc(limit, s.Kill)
	defer late.Stop()
	r, err := s.Channel.Receive()
	switch m := r.Message.(type) {
	case *ipc.Proven:
		if !m.OK {
			err = errs.New(errs.Kind(m.Class), "%s", printable.Text(m.Text)).WithHint("%s", printable.Text(m.Hint))
		}
		return security.Sealed(m.Sealed), err
	case nil: // the channel has ended
	default:
		err = ipc.Unheard(m)
	}
	s.Kill()
	<-s.Dead
	_ = s.Log.SetReadDeadline(time.Now().Add(lastWords)) // another process may have the other end open
	said, _ := io.ReadAll(io.LimitReader(s.Log, mostSaid))
	why := printable.Text(cmp.Or(strings.TrimSpace(string(said)), err.Error()))
	if code := s.Ended.ExitStatus(); code == stage.ExitIdentity || code == stage.ExitTarget {
		return sealed, unstarted(program, why)
	}
	return sealed, errs.New(errs.Denied, "the workers' sandbox was not verified: %s (%s)", why, exitstatus.Describe(s.Ended)).
		WithHint("%s may be from another build: install all programs from the same build with make install", program)
}

// unstarted returns the error for a program that the stage could not execute.
// The argument why is the text that the stage wrote, which ends with the
// kernel's reason.
func unstarted(program, why string) error {
	for _, cause := range []unix.Errno{unix.ENOEXEC, unix.EACCES, unix.EAGAIN} {
		if strings.HasSuffix(why, cause.Error()) {
			return errs.Wrap(noProcess(program, cause), errs.Internal, "start %s", program)
		}
	}
	return errs.New(errs.Internal, "start %s: %s", program, why)
}
