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

// A worker can only try the operations that the sandbox answers with an error.
// Operations for which the sandbox kills are tried by processes that must be
// killed. A process that starts like a worker starts them (package proof), and
// sends this process its verdict.

const (
	mostSaid  = 4 << 10         // bytes of its log that are read
	proofTime = 5 * time.Second // that it may take beside its cases
	pageCases = 40              // rounds of cases for the page, at most
)

// ProveDeath proves that the sandbox kills, before the gateway serves a client. It
// returns how the sandbox is closed.
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

// Prove starts a process that closes the sandbox and proves as much as the argument what
// requests. It returns how the sandbox is closed. facts are facts that the process can't
// find out itself. The process writes its page to out.
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

// proven waits until the process reports that its sandbox is closed. It kills a process
// that takes longer than limit. A program of this build reports why it can't close the
// sandbox. Another program in its place writes some text to its log, or none.
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
	case nil: // its channel has ended
	default:
		err = ipc.Unheard(m)
	}
	s.Kill()
	<-s.Dead
	_ = s.Log.SetReadDeadline(time.Now().Add(lastWords)) // another process may have its other end
	said, _ := io.ReadAll(io.LimitReader(s.Log, mostSaid))
	why := printable.Text(cmp.Or(strings.TrimSpace(string(said)), err.Error()))
	if code := s.Ended.ExitStatus(); code == stage.ExitIdentity || code == stage.ExitTarget {
		return sealed, unstarted(program, why)
	}
	return sealed, errs.New(errs.Denied, "the workers' sandbox was not verified: %s (%s)", why, exitstatus.Describe(s.Ended)).
		WithHint("%s may be from another build: install all programs from the same build with make install", program)
}

// unstarted returns the error for a program that the stage could not execute. why is
// what the stage wrote; it ends with the kernel's reason.
func unstarted(program, why string) error {
	for _, cause := range []unix.Errno{unix.ENOEXEC, unix.EACCES, unix.EAGAIN} {
		if strings.HasSuffix(why, cause.Error()) {
			return errs.Wrap(noProcess(program, cause), errs.Internal, "start %s", program)
		}
	}
	return errs.New(errs.Internal, "start %s: %s", program, why)
}
