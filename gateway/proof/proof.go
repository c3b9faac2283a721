// Package proof tests that the sandbox of workers works: a process does
// something that the sandbox forbids, and must be killed for it. This detects a
// filter that a kernel, a container or an emulator accepts but ignores.
//
// The parent starts the worker's program without privileges, like a worker, but
// with arguments that request a proof. This process is the prover. For each
// case, the prover starts another process, which closes the sandbox like a
// worker and then makes one forbidden call. The prover sends the result to the
// parent (ipc.Proven). For --check-confinement, it also writes the page.
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

	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/security/root"
	"schedrestd/security/sandbox"
	"schedrestd/security/self"
)

// Closer closes the sandbox of this process, as a worker does before it serves
// requests.
type Closer func(ipc.SandboxOptions) (sandbox.Layers, error)

// smokeSet lists the cases that run at each start of the gateway: one for each
// kind of forbidden call. With --check-confinement, all cases run (pageSet).
var smokeSet = []string{"kill of the parent", "process_vm_readv", "fork by clone", "unshare", "mount", "io_uring_setup", "bpf", "sendmsg"}

// Main runs the proof or the case that the arguments of the program ask for,
// and returns its exit status. If they ask for neither, requested is false. The
// page of --check-confinement shows the results of pageSet.
func Main(args []string, closeSandbox Closer, pageSet []string) (status int, requested bool) {
	if !Requested(args) {
		return 0, false
	}
	if at := len(args) - 3; args[at] == caseMode {
		signal.Ignore()
		return exitStatus(runCase(args[at+1], args[at+2], closeSandbox)), true
	}
	channel, err := ipc.Open(ipc.WorkerFD, ipc.Worker, ipc.Parent)
	if err != nil {
		return exitStatus(err), true
	}
	at := slices.Index(args, ipc.ProveMode)
	return Report(channel, func() (sandbox.Layers, error) {
		return prove(args[:at], args[at+1], args[at+2], args[at+3], args[at+4:], pageSet)
	}), true
}

// Report calls try, sends the result to the parent, and returns the exit
// status.
func Report(channel *ipc.Channel, try func() (sandbox.Layers, error)) int {
	enforced, err := try()
	if sendErr := channel.Send(&ipc.Proven{Result: ipc.ResultOf(err), Sandbox: ipc.Ready(enforced)}); sendErr != nil || err != nil {
		return 1
	}
	return 0
}

// Requested reports whether the arguments of the program ask for a proof or a
// case.
func Requested(args []string) bool {
	if at := len(args) - 3; at > 0 && args[at] == caseMode {
		return true
	}
	at := slices.Index(args, ipc.ProveMode)
	return at > 0 && len(args) >= at+4
}

// exitStatus writes err to standard error, and returns the exit status.
func exitStatus(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, failedPrefix+err.Error())
	return 1
}

type prover struct {
	prefix   []string // program arguments before those of this package
	options  ipc.SandboxOptions
	limit    time.Duration // a case that takes longer is killed
	enforced sandbox.Layers
}

// prove carries out the proof with the given name: ipc.ProveClosed,
// ipc.ProveSmoke or ipc.ProvePage. First it sets up the namespaces and root
// directory of this process (self.SetUpNamespaces), so that all processes that
// it starts share them.
func prove(prefix []string, options, name, limit string, facts, pageSet []string) (sandbox.Layers, error) {
	s, err := strconv.ParseUint(options, 10, 8)
	if err != nil {
		return sandbox.Layers{}, fmt.Errorf("sandbox options: %w", err)
	}
	p := prover{prefix: prefix, options: ipc.SandboxOptions(s)}
	if p.limit, err = time.ParseDuration(limit); err != nil {
		return sandbox.Layers{}, err
	}
	if err := self.SetUpNamespaces(); err != nil {
		return sandbox.Layers{}, err
	}
	os.Unsetenv(root.CapsVariable)
	runtime.LockOSThread() // the death signal of each case depends on this thread
	switch name {
	case ipc.ProveClosed:
		_, err = p.run(nil)
	case ipc.ProveSmoke:
		failures, runErr := p.run(smokeSet)
		if err = runErr; err == nil && len(failures) > 0 {
			err = errs.New(errs.Denied, "forbidden system calls did not kill: %s", strings.Join(failures, "; ")).
				WithHint("run schedrestd --check-confinement for details; to serve nevertheless, set SCHEDRESTD_SECURITY=audit_confinement")
		}
	case ipc.ProvePage:
		if _, err = p.run(nil); err == nil {
			err = newPage(os.Stdout, p.options, p.enforced, facts).write(pageSet, p.run)
		}
	default:
		err = fmt.Errorf("unknown proof %q: install all programs from the same build", name)
	}
	return p.enforced, err
}

// run runs the cases, a few at a time, and returns those whose processes were
// not killed. If there are no cases, it starts one process, which closes the
// sandbox and makes no forbidden call.
func (p *prover) run(cases []string) (failures []string, err error) {
	if len(cases) == 0 {
		cases = []string{""}
	}
	for list := range slices.Chunk(cases, ipc.DeathTests) {
		var started []*deathTest
		for _, name := range list {
			t, testErr := p.start(name)
			if testErr != nil {
				err = testErr
				break
			}
			started = append(started, t)
		}
		for _, t := range started { // wait for every process, even after a failure
			failure, testErr := t.wait(p)
			if testErr != nil {
				err = testErr
			}
			if failure != "" {
				failures = append(failures, failure)
			}
		}
		if err != nil {
			return failures, err
		}
	}
	return failures, nil
}

// deathTest is a process that makes a forbidden call and must be killed for it.
type deathTest struct {
	name   string // "": the process closes the sandbox and exits
	cmd    *exec.Cmd
	stderr bytes.Buffer
	timer  *time.Timer
}

// start starts a process of the same program. The new process shares the
// standard input and output of the prover, because there may be no /dev/null in
// the prover's root directory.
func (p *prover) start(name string) (*deathTest, error) {
	t := &deathTest{name: name, cmd: exec.Command("/proc/self/exe")}
	t.cmd.Args = append(slices.Clone(p.prefix), caseMode, strconv.Itoa(int(p.options)), name)
	t.cmd.Stdin, t.cmd.Stdout, t.cmd.Stderr = os.Stdin, os.Stdout, &t.stderr
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	t.cmd.WaitDelay = time.Second // a process that the case forked may still hold the pipe
	if err := t.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start death test: %w", err)
	}
	t.timer = time.AfterFunc(p.limit, func() { _ = t.cmd.Process.Kill() })
	return t, nil
}

// wait waits for the process. It returns "" if the process was killed for its
// forbidden call, and otherwise a description of what happened. It returns an
// error if the process could not close the sandbox.
func (t *deathTest) wait(p *prover) (failure string, err error) {
	err = t.cmd.Wait()
	t.timer.Stop()
	if t.cmd.ProcessState == nil {
		return "", fmt.Errorf("wait for death test: %w", err)
	}
	status, stderr := t.cmd.ProcessState.Sys().(syscall.WaitStatus), t.stderr.String()
	enforced, closed := readSandbox(strings.Join(linesWithPrefix(stderr, sandboxPrefix), ""))
	killed := status.Signaled() && status.Signal() == syscall.SIGSYS &&
		slices.Equal(linesWithPrefix(stderr, casePrefix), []string{t.name})
	switch {
	case closed && (killed || t.name == "" && status == 0):
		p.enforced = enforced
		return "", nil
	case !closed && status.Exited(), t.name == "":
		reason := strings.Join(linesWithPrefix(stderr, failedPrefix), "; ")
		if reason == "" {
			reason = strings.TrimSpace(stderr)
		}
		return "", errs.New(errs.Denied, "%s (%s)", reason, t.cmd.ProcessState).WithHint("docs/KERNELS.md lists the kernels that support it")
	case !closed:
		return fmt.Sprintf("%s (%s before it was done: %s)", t.name, t.cmd.ProcessState, strings.TrimSpace(stderr)), nil
	}
	last := stderr[strings.LastIndexByte(strings.TrimRight(stderr, "\n"), '\n')+1:]
	return fmt.Sprintf("%s (%s: %s)", t.name, t.cmd.ProcessState, strings.TrimSpace(last)), nil
}

// linesWithPrefix returns the lines of text that begin with prefix, without the
// prefix.
func linesWithPrefix(text, prefix string) (list []string) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), prefix); ok {
			list = append(list, rest)
		}
	}
	return list
}

// caseMode is the argument that starts a case. It is followed by the
// ipc.SandboxOptions, as a number, and the name of the case.
const caseMode = "death-test"

// Each line that a case writes to standard error begins with one of these
// words.
const (
	sandboxPrefix = "sandbox: "    // the parts of the sandbox: a sandboxText
	failedPrefix  = "failed: "     // why the sandbox does not work
	casePrefix    = "death test: " // the call that is about to be made
)

const sandboxFormat = "filter %t audit %t landlock %d denies %d"

// sandboxText encodes s as a text for readSandbox.
func sandboxText(s sandbox.Layers) string {
	return fmt.Sprintf(sandboxFormat, s.Filter, s.Audit, s.Landlock, s.Denies)
}

// readSandbox decodes a text from sandboxText, and rejects any other text.
func readSandbox(text string) (s sandbox.Layers, ok bool) {
	_, err := fmt.Sscanf(text, sandboxFormat, &s.Filter, &s.Audit, &s.Landlock, &s.Denies)
	return s, err == nil && sandboxText(s) == text
}

// caseFiles limits the open descriptors of a case's process. The process needs
// the standard descriptors and those of Go's runtime.
const caseFiles = 32

// runCase closes the sandbox and makes the forbidden call with the given name,
// which must kill the process. If name is "", runCase makes no call and returns
// nil.
func runCase(options, name string, closeSandbox Closer) error {
	s, err := strconv.ParseUint(options, 10, 8)
	if err != nil {
		return fmt.Errorf("sandbox options: %w", err)
	}
	if err := self.Confine(caseFiles, false); err != nil {
		return err
	}
	enforced, err := closeSandbox(ipc.SandboxOptions(s))
	if err != nil {
		return err
	}
	text := sandboxPrefix + sandboxText(enforced) + "\n"
	if name != "" {
		text += casePrefix + name + "\n"
	}
	if _, err := fmt.Fprint(os.Stderr, text); err != nil || name == "" {
		return err
	}
	return sandbox.RunDeathTest(name)
}
