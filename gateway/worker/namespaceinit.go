package worker

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/gateway/proof"
	"schedrestd/ipc"
	"schedrestd/security"
	"schedrestd/security/root"
	"schedrestd/security/sandbox"
	"schedrestd/security/self"
)

// NamespaceInitArg returns the argument of a namespace init: the mode for the
// sandbox, a comma, and the maximum number of processes in the namespace. ok is
// false if the program was not started as a namespace init.
func NamespaceInitArg(args []string) (options string, ok bool) {
	if len(args) < 3 || args[len(args)-1] != ipc.NamespaceInitMode {
		return "", false
	}
	return args[len(args)-2], true
}

// initFiles limits the open descriptors of a namespace init, including those of
// the Go runtime.
const initFiles = 16

// NamespaceInit runs the init process of the PID namespace of the workers and
// the keeper, and returns its exit status. The process first mounts /proc for
// the namespace, which is possible only in the namespace. It then switches to
// an unused uid, enters its sandbox, and reports to the parent. It exits when
// the parent exits or closes the channel. The kernel then kills all processes
// in the namespace.
func NamespaceInit(options string) int {
	signal.Ignore() // SIGCHLD too: the kernel then reaps orphans
	channel, err := ipc.Open(ipc.WorkerFD, ipc.Worker, ipc.Parent)
	if err != nil {
		return 2
	}
	status := proof.Report(channel, func() (sandbox.Layers, error) { return setUpInit(options) })
	if status != 0 {
		return status
	}
	if r, err := channel.Receive(); err == nil {
		fmt.Fprintln(os.Stderr, ipc.Unhandled(r.Message))
		return 1
	}
	return 0
}

// setUpInit turns the process into the namespace init.
func setUpInit(options string) (enforced sandbox.Layers, err error) {
	options, pids, _ := strings.Cut(options, ",")
	maxPIDs, _ := strconv.Atoi(pids)
	s, err := strconv.ParseUint(options, 10, 8)
	if err != nil {
		return enforced, fmt.Errorf("sandbox options: %w", err)
	}
	if err := errors.Join(self.SetUpNamespaces(), root.MountProc()); err != nil {
		return enforced, err
	}
	_ = self.LimitPIDs(maxPIDs) // where the kernel supports it; each process also has its own limit
	if err := becomeNobody(); err != nil {
		return enforced, err
	}
	// Changing the uid or gid clears the death signal, so it is set again.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return enforced, fmt.Errorf("set the death signal: %w", err)
	}
	if err := self.Confine(initFiles, false); err != nil {
		return enforced, err
	}
	flags := ipc.SandboxOptions(s)
	return sandbox.Close(sandbox.Options{Kind: sandbox.Keeper, Audit: flags&ipc.SandboxAudit != 0}, flags&ipc.SandboxRequire != 0)
}

// becomeNobody gives up root permanently. It switches to a uid and a gid that
// no user has, so that no user can signal or trace the process. The process
// keeps no capabilities, and its bounding set is empty. If the process is not
// root, it keeps its uid and gid.
func becomeNobody() error {
	ids := security.Caps(unix.CAP_SETUID, unix.CAP_SETGID)
	if os.Geteuid() != 0 {
		ids = 0
	}
	caps, err := security.KeepCapabilities(ids, 0)
	if err != nil || caps == 0 {
		return err
	}
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("drop supplementary groups: %w", err)
	}
	id, err := become.UnusedID()
	if err != nil {
		return err
	}
	n := int(id)
	if err = syscall.Setresgid(n, n, n); err == nil {
		err = syscall.Setresuid(n, n, n)
	}
	if err != nil {
		return fmt.Errorf("switch to an unused id: %w", err)
	}
	_, err = security.KeepCapabilities(0, 0) // also verifies that none is left
	return err
}
