package spawn

import (
	"io"
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
// this process reads its verdict.

const (
	mostSaid  = 64 << 10        // bytes that such a process may write
	proofTime = 5 * time.Second // that it may take beside its cases
	pageCases = 40              // rounds of cases for the page, at most
)

// ProveDeath proves, before a client is served, that the sandbox kills. It returns how
// the sandbox is closed.
func (s *Spawner) ProveDeath() (sealed security.Sealed, err error) {
	what := ipc.ProveSmoke
	switch {
	case !security.Sandboxed:
		s.Log.Warn("the workers are confined by next to nothing: this build is for measuring what that costs")
		return sealed, nil
	case s.Switches.AuditConfinement:
		s.Log.Warn("system calls that should end a worker are only logged by the kernel (audit_confinement): that the sandbox kills is not proven")
		what = ipc.ProveClosed
	}
	return s.Prove(what)
}

// Prove makes a process close the sandbox, and prove as much as what requests.
func (s *Spawner) Prove(what string) (sealed security.Sealed, err error) {
	said, p, err := s.prove(what, s.StartLimit+proofTime)
	if err != nil {
		return sealed, err
	}
	sealed, ok := security.ReadSealed(strings.Join(told(said, ipc.SaySealed), ""))
	if !ok || exitstatus.Describe(p.Ended) != exitstatus.OK {
		return sealed, s.unproven(said, p)
	}
	return sealed, nil
}

// Page makes such a process try everything, and write a page for the
// administrator to out. facts are what the process can't know by itself.
func (s *Spawner) Page(out io.Writer, facts ...string) error {
	said, p, err := s.prove(ipc.ProvePage, pageCases*s.StartLimit, facts...)
	if err != nil {
		return err
	}
	for line := range strings.Lines(said) {
		if !strings.HasPrefix(line, ipc.SayFailed) && !strings.HasPrefix(line, ipc.SayHint) {
			_, _ = io.WriteString(out, printable.Text(strings.TrimSuffix(line, "\n"))+"\n")
		}
	}
	if exitstatus.Describe(p.Ended) != exitstatus.OK {
		return s.unproven(said, p)
	}
	return nil
}

// prove starts the process and waits for its end. It returns what the process wrote.
func (s *Spawner) prove(what string, limit time.Duration, facts ...string) (said string, p *Process, err error) {
	logRead, logWrite, err := pipe()
	if err != nil {
		return "", nil, err
	}
	defer logRead.Close()
	argv := append(slices.Clone(s.Argv), ipc.ProveMode, strconv.Itoa(int(s.Seal)), what, s.StartLimit.String())
	p, err = s.start(Spec{Role: ipc.Worker, Program: s.Worker, Argv: append(argv, facts...), Threads: 1, Who: s.Identity}, int(s.null.Fd()), logWrite)
	unix.Close(logWrite)
	if err != nil {
		return "", nil, err
	}
	_ = logRead.SetReadDeadline(time.Now().Add(limit))
	text, err := io.ReadAll(io.LimitReader(logRead, mostSaid))
	late := time.AfterFunc(lastWords, p.Kill)
	defer late.Stop()
	if err != nil {
		p.Kill()
	}
	<-p.Dead
	return string(text), p, nil
}

// unproven returns the error for a process that has ended and proved nothing.
// One of this build says why; another program in the place of the worker's says
// something else, or nothing.
func (s *Spawner) unproven(said string, p *Process) error {
	why, hint := strings.Join(told(said, ipc.SayFailed), "; "), strings.Join(told(said, ipc.SayHint), "; ")
	if why != "" {
		return errs.New(errs.Denied, "%s", why).WithHint("%s", hint)
	}
	program, why := s.Worker.Name(), printable.Text(strings.TrimSpace(said))
	if code := p.Ended.ExitStatus(); code == stage.ExitIdentity || code == stage.ExitTarget {
		return unstarted(program, why)
	}
	return errs.New(errs.Denied, "the workers' sandbox is not proven: %s (%s)", why, exitstatus.Describe(p.Ended)).
		WithHint("%s is of another build than this program, or another program: make install puts all of one build in place", program)
}

// told returns the rests of the lines that begin with word.
func told(said, word string) (list []string) {
	for line := range strings.Lines(said) {
		if rest, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), word); ok {
			list = append(list, printable.Text(rest))
		}
	}
	return list
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
