// Package proof shows that the sandbox of workers holds: a process does what the
// sandbox forbids, and must be killed for it. A filter that a kernel, a container
// or an emulator accepts and ignores is found this way.
//
// The parent starts the worker's program in this mode exactly as it starts a
// worker, so whatever runs here has no privileges. That process starts others,
// which close the sandbox as a worker does and then do one forbidden thing each.
// The result is the exit status and a few lines on standard error; see package ipc
// for their form. The page of --check-confinement is written here as well.
package proof

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"schedrestd/ipc"
	"schedrestd/security"
	"schedrestd/security/root"
	"schedrestd/security/seal"
	"schedrestd/security/self"
)

// Closer closes the sandbox of this process as a worker does before it serves.
type Closer func(ipc.Seal) (security.Sealed, error)

// smokeSet is what is tried at each start, one case of each kind.
// --check-confinement tries all that there are.
var smokeSet = []string{"kill of the parent", "process_vm_readv", "fork by clone", "unshare", "mount", "io_uring_setup", "bpf", "sendmsg"}

// Main does what the arguments of the program ask for and returns its exit status.
// asked is false when they ask for no proof.
func Main(args []string, close Closer) (status int, asked bool) {
	if !Asked(args) {
		return 0, false
	}
	if at := len(args) - 3; args[at] == actMode {
		signal.Ignore()
		return say(act(args[at+1], args[at+2], close)), true
	}
	at := slices.Index(args, ipc.ProveMode)
	return say(prove(args[:at], args[at+1], args[at+2], args[at+3], args[at+4:])), true
}

// Asked reports whether the arguments of the program ask for a proof.
func Asked(args []string) bool {
	if at := len(args) - 3; at > 0 && args[at] == actMode {
		return true
	}
	at := slices.Index(args, ipc.ProveMode)
	return at > 0 && len(args) >= at+4
}

// say writes why a proof failed, and returns the exit status.
func say(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, ipc.SayFailed+err.Error())
	if f, ok := err.(failure); ok {
		fmt.Fprintln(os.Stderr, ipc.SayHint+f.hint)
	}
	return 1
}

// failure is an error with a remedy.
type failure struct {
	error
	hint string
}

// prover runs the cases.
type prover struct {
	prefix []string // arguments before those of this package
	how    ipc.Seal
	limit  time.Duration // for one case
	sealed security.Sealed
}

// prove runs the cases that what asks for. It settles first, as the thread that
// serves would, so that all that it starts is in the same namespaces.
func prove(prefix []string, how, what, limit string, facts []string) error {
	s, err := strconv.ParseUint(how, 10, 8)
	if err != nil {
		return fmt.Errorf("how to close the sandbox: %w", err)
	}
	p := prover{prefix: prefix, how: ipc.Seal(s)}
	if p.limit, err = time.ParseDuration(limit); err != nil {
		return err
	}
	if err := self.Settle(); err != nil {
		return err
	}
	os.Unsetenv(root.Variable)
	runtime.LockOSThread() // the death signal of each case hangs on this thread
	switch what {
	case ipc.ProveClosed:
		_, err = p.run(nil)
	case ipc.ProveSmoke:
		wrong, failed := p.run(smokeSet)
		if err = failed; err == nil && len(wrong) > 0 {
			err = failure{fmt.Errorf("forbidden system calls did not kill: %s", strings.Join(wrong, "; ")),
				"schedrestd --check-confinement shows all of it; SCHEDRESTD_SECURITY=audit_confinement serves without"}
		}
	case ipc.ProvePage:
		return newPage(os.Stderr, p.how, facts).write(p.run)
	default:
		err = fmt.Errorf("proof of %q, which is unknown: install all programs from the same build", what)
	}
	if err == nil {
		fmt.Fprintln(os.Stderr, ipc.SaySealed+p.sealed.Line())
	}
	return err
}

// run has a process do each of the cases, a few at a time, and returns those that
// did not kill. Without cases one process closes the sandbox and does nothing.
func (p *prover) run(cases []string) (wrong []string, err error) {
	if len(cases) == 0 {
		cases = []string{""}
	}
	for list := range slices.Chunk(cases, ipc.DeathTests) {
		var started []*deathTest
		for _, name := range list {
			t, failed := p.start(name)
			if failed != nil {
				err = failed
				break
			}
			started = append(started, t)
		}
		for _, t := range started { // each of them, whatever became of the others
			why, failed := t.judge(p)
			if failed != nil {
				err = failed
			}
			if why != "" {
				wrong = append(wrong, why)
			}
		}
		if err != nil {
			return wrong, err
		}
	}
	return wrong, nil
}

// deathTest is a process that must be killed for what it does.
type deathTest struct {
	name string // "": it closes the sandbox and exits
	cmd  *exec.Cmd
	said bytes.Buffer
	late *time.Timer
}

// start starts a process of the same program. Its standard input and output are
// this one's: there may be no /dev/null here.
func (p *prover) start(name string) (*deathTest, error) {
	t := &deathTest{name: name, cmd: exec.Command("/proc/self/exe")}
	t.cmd.Args = append(slices.Clone(p.prefix), actMode, strconv.Itoa(int(p.how)), name)
	t.cmd.Stdin, t.cmd.Stdout, t.cmd.Stderr = os.Stdin, os.Stdout, &t.said
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	t.cmd.WaitDelay = time.Second // a case that forked may have left the pipe to another
	if err := t.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a death test: %w", err)
	}
	t.late = time.AfterFunc(p.limit, func() { _ = t.cmd.Process.Kill() })
	return t, nil
}

// judge waits for the process and returns why it was not killed for what it did;
// "" when it was. An error says that it could not close the sandbox.
func (t *deathTest) judge(p *prover) (wrong string, err error) {
	err = t.cmd.Wait()
	t.late.Stop()
	if t.cmd.ProcessState == nil {
		return "", fmt.Errorf("wait for a death test: %w", err)
	}
	status, said := t.cmd.ProcessState.Sys().(syscall.WaitStatus), t.said.String()
	sealed, closed := security.ReadSealed(strings.Join(told(said, ipc.SaySealed), ""))
	killed := status.Signaled() && status.Signal() == syscall.SIGSYS && slices.Equal(told(said, sayAct), []string{t.name})
	switch {
	case closed && (killed || t.name == "" && status == 0):
		p.sealed = sealed
		return "", nil
	case !closed && status.Exited(), t.name == "":
		why := strings.Join(told(said, ipc.SayFailed), "; ")
		if why == "" {
			why = strings.TrimSpace(said)
		}
		return "", failure{fmt.Errorf("%s (%s)", why, t.cmd.ProcessState), "docs/PRIVSEP.md has the kernels that it can be closed on"}
	case !closed:
		return fmt.Sprintf("%s (%s before it was done: %s)", t.name, t.cmd.ProcessState, strings.TrimSpace(said)), nil
	}
	last := said[strings.LastIndexByte(strings.TrimRight(said, "\n"), '\n')+1:]
	return fmt.Sprintf("%s (%s: %s)", t.name, t.cmd.ProcessState, strings.TrimSpace(last)), nil
}

// told returns the rests of the lines that begin with word.
func told(said, word string) (list []string) {
	for line := range strings.Lines(said) {
		if rest, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), word); ok {
			list = append(list, rest)
		}
	}
	return list
}

const (
	actMode = "act"   // the arguments after it are the Seal and the name of the case
	sayAct  = "act: " // begins the line that says what is about to be done
)

// actFiles is how many descriptors may be open: standard ones, and the runtime's own.
const actFiles = 32

// act closes the sandbox and does what kills. That it returns without an error
// means that there was nothing to do.
func act(how, name string, close Closer) error {
	s, err := strconv.ParseUint(how, 10, 8)
	if err != nil {
		return fmt.Errorf("how to close the sandbox: %w", err)
	}
	if err := self.Confine(actFiles, false); err != nil {
		return err
	}
	sealed, err := close(ipc.Seal(s))
	if err != nil {
		return err
	}
	text := ipc.SaySealed + sealed.Line() + "\n"
	if name != "" {
		text += sayAct + name + "\n"
	}
	if _, err := fmt.Fprint(os.Stderr, text); err != nil || name == "" {
		return err
	}
	return seal.Commit(name)
}
