package spawn

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become/stage"
	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/security"
)

// What a worker tries before it serves has to be answered, or it could not try it. That everything else kills is
// proven by processes that exist to die of it: born as workers are, they close the cage as workers do
// and do what it kills for. A filter that a kernel, a container or an emulator takes and does not mind is found out so.

// SmokeSet is what is tried at each start, one act of each kind. Config.Check tries all there are.
var SmokeSet = []string{"kill of the parent", "process_vm_readv", "fork by clone", "unshare", "mount", "io_uring_setup", "bpf", "sendmsg"}

// sacrifice is a process that is to die.
type sacrifice struct {
	act     string // "": it only tells what there is
	program string
	pid     int
	pidfd   *os.File
	log     *os.File
}

// sacrifice starts one.
func (s *Spawner) sacrifice(act string) (*sacrifice, error) {
	logRead, logWrite, err := Pipe()
	if err != nil {
		return nil, err
	}
	defer unix.Close(logWrite)
	argv := append(slices.Clone(s.Argv), ipc.ActMode, strconv.Itoa(int(s.Seal)), act)
	pid, pidfd, err := s.start(Birth{Role: ipc.Worker, Program: s.Worker, Argv: argv, Threads: 1, Who: s.Identity}, int(s.null.Fd()), logWrite)
	if err != nil {
		logRead.Close()
		return nil, err
	}
	return &sacrifice{act: act, program: s.Worker.Name(), pid: pid, pidfd: os.NewFile(uintptr(pidfd), "sacrifice"), log: logRead}, nil
}

// mostSaid bounds what one may say.
const mostSaid = 64 << 10

// end waits for the end of it, at most so long, and gives what it said.
func (x *sacrifice) end(limit time.Duration) (said string, status unix.WaitStatus, err error) {
	defer x.log.Close()
	defer x.pidfd.Close()
	_ = x.log.SetReadDeadline(time.Now().Add(limit))
	text, err := io.ReadAll(io.LimitReader(x.log, mostSaid))
	late := time.AfterFunc(LastWords, x.kill)
	if err != nil {
		x.kill()
	}
	for {
		if _, err = unix.Wait4(x.pid, &status, 0, nil); err != unix.EINTR {
			break
		}
	}
	late.Stop()
	return string(text), status, errs.Wrap(err, errs.Internal, "wait for a process that proves the cage")
}

func (x *sacrifice) kill() {
	if raw, err := x.pidfd.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) })
	}
}

// told is the rests of the lines that begin with word.
func told(said, word string) (list []string) {
	for line := range strings.Lines(said) {
		if rest, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), word); ok {
			list = append(list, Printable(rest))
		}
	}
	return list
}

// toldSealed is how the process says that it closed its cage.
func toldSealed(said string) (sealed security.Sealed, ok bool) {
	return security.ReadSealed(strings.Join(told(said, ipc.SaySealed), ""))
}

// judge tells why the process did not die of what it did; "" when it did.
func (x *sacrifice) judge(limit time.Duration) (sealed security.Sealed, wrong string, err error) {
	said, status, err := x.end(limit)
	if err != nil {
		return sealed, "", err
	}
	sealed, closed := toldSealed(said)
	switch {
	case closed && status.Signaled() && status.Signal() == syscall.SIGSYS && slices.Equal(told(said, ipc.SayAct), []string{x.act}):
		return sealed, "", nil
	case !closed && status.Exited():
		return sealed, "", unclosed(x.program, said, status)
	case !closed:
		return sealed, fmt.Sprintf("%s (%s before it was done: %s)", x.act, Describe(status), Printable(strings.TrimSpace(said))), nil
	}
	last := said[strings.LastIndexByte(strings.TrimRight(said, "\n"), '\n')+1:]
	return sealed, fmt.Sprintf("%s (%s: %s)", x.act, Describe(status), Printable(strings.TrimSpace(last))), nil
}

// unclosed is about a process that ended with status before it had closed the cage. One of this build says why; whatever else is
// there in the place of the workers' program says something else, or nothing.
func unclosed(program, said string, status unix.WaitStatus) error {
	hint := "docs/PRIVSEP.md has the kernels that it can be closed on"
	why := strings.Join(told(said, ipc.SayFailed), "; ")
	if why == "" {
		why = Printable(strings.TrimSpace(said))
		if code := status.ExitStatus(); code == stage.ExitIdentity || code == stage.ExitTarget {
			return unstarted(program, why)
		}
		hint = program + " is of another build than this program, or another program: make install puts all of one build in place"
	}
	return errs.New(errs.Denied, "the workers' cage can't be closed: %s (%s)", why, Describe(status)).WithHint("%s", hint)
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

// AtOnce is how many processes die side by side.
const AtOnce = 8

// Commit has each act done by a process of its own, and gives those that did not kill.
func (s *Spawner) Commit(acts []string) (sealed security.Sealed, wrong []string, err error) {
	for list := range slices.Chunk(acts, AtOnce) {
		var started []*sacrifice
		for _, act := range list {
			x, failed := s.sacrifice(act)
			if failed != nil {
				err = failed
				break
			}
			started = append(started, x)
		}
		for _, x := range started { // each of them, whatever became of the others
			how, why, failed := x.judge(s.StartLimit)
			if failed != nil {
				err = failed
			}
			if why != "" {
				wrong = append(wrong, why)
			}
			sealed = how
		}
		if err != nil {
			return sealed, wrong, err
		}
	}
	return sealed, wrong, nil
}

// Recite has a process close the cage, and tell how that went and what can be tried.
func (s *Spawner) Recite() (sealed security.Sealed, probes, acts []string, err error) {
	x, err := s.sacrifice("")
	if err != nil {
		return sealed, nil, nil, err
	}
	said, status, err := x.end(s.StartLimit)
	sealed, closed := toldSealed(said)
	if err == nil && (status != 0 || !closed) {
		err = unclosed(x.program, said, status)
	}
	return sealed, told(said, ipc.SayProbe), told(said, ipc.SayAct), err
}

// ProveDeath has a handful die of what the cage forbids, before anybody is served. It gives how the cage is closed.
func (s *Spawner) ProveDeath() (sealed security.Sealed, err error) {
	if !security.Caged {
		s.Log.Warn("the workers are confined by next to nothing: this build is for measuring what that costs")
		return sealed, nil
	}
	if s.Switches.AuditConfinement {
		s.Log.Warn("what the workers' cage should kill for is logged by the kernel, and kills nobody (audit_confinement): that it kills is not proven")
		sealed, _, _, err = s.Recite()
		return sealed, err
	}
	sealed, wrong, err := s.Commit(SmokeSet)
	if err == nil && len(wrong) > 0 {
		err = errs.New(errs.Denied, "what the workers' cage forbids did not kill who did it: %s", strings.Join(wrong, "; ")).
			WithHint("schedrestd --check-confinement shows all of it; SCHEDRESTD_SECURITY=audit_confinement serves without")
	}
	return sealed, err
}
