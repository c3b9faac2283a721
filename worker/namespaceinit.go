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
	"schedrestd/ipc"
	"schedrestd/security"
	"schedrestd/security/root"
	"schedrestd/security/seal"
	"schedrestd/security/self"
)

// NamespaceInitArg returns how to close the sandbox and how many processes the
// namespace may have. ok is false unless the program was started as a namespace
// init.
func NamespaceInitArg(args []string) (how string, ok bool) {
	if len(args) < 3 || args[len(args)-1] != ipc.NamespaceInitMode {
		return "", false
	}
	return args[len(args)-2], true
}

// initFiles limits the open descriptors of a namespace init: its own and the
// runtime's.
const initFiles = 16

// NamespaceInit runs the init process of the PID namespace that workers and the keeper
// live in, and returns its exit status. It mounts the /proc that they see,
// which only a process inside the namespace can do, switches to an unused id,
// closes its sandbox and reports that. Then it waits until the parent exits or
// closes the channel. When it exits, the kernel kills every process of the
// namespace.
func NamespaceInit(how string) int {
	signal.Ignore() // SIGCHLD too: the kernel then reaps orphans
	line := os.NewFile(ipc.WorkerFD, "line to the parent")
	said := ipc.NamespaceInitReady
	err := hold(how)
	if err != nil {
		said = err.Error()
	}
	if _, failed := line.WriteString(said); failed != nil || err != nil {
		return 1
	}
	_, _ = line.Read(make([]byte, 1))
	return 0
}

// hold turns the process into the namespace init.
func hold(how string) error {
	how, pids, _ := strings.Cut(how, ",")
	most, _ := strconv.Atoi(pids)
	s, err := strconv.ParseUint(how, 10, 8)
	if err != nil {
		return fmt.Errorf("sandbox options: %w", err)
	}
	if err := errors.Join(self.Settle(), root.MountProc()); err != nil {
		return err
	}
	_ = self.LimitPIDs(most) // where the kernel supports it; each process has its own limit, too
	if err := becomeNobody(); err != nil {
		return err
	}
	// The change of ids has cleared the death signal.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("set the death signal: %w", err)
	}
	if err := self.Confine(initFiles, false); err != nil {
		return err
	}
	_, err = seal.Close(seal.Options{Kind: seal.Keeper, Audit: ipc.Seal(s)&ipc.SealAudit != 0}, ipc.Seal(s)&ipc.SealRequire != 0)
	return err
}

// becomeNobody gives up root permanently: the process gets ids that no user
// has, so that no user can signal or trace it, no capability, and an empty
// bounding set. A process that is not root keeps its ids.
func becomeNobody() error {
	ids := security.Caps(unix.CAP_SETUID, unix.CAP_SETGID)
	if os.Geteuid() != 0 {
		ids = 0
	}
	kept, err := security.KeepCapabilities(ids, 0)
	if err != nil || kept == 0 {
		return err
	}
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("drop supplementary groups: %w", err)
	}
	err = fmt.Errorf("no random number to choose an id")
	for _, id := range become.UnusedIDs() {
		n := int(id)
		if err = syscall.Setresgid(n, n, n); err == nil {
			err = syscall.Setresuid(n, n, n)
		}
		if err == nil {
			_, err = security.KeepCapabilities(0, 0) // also verifies that none is left
			return err
		}
	}
	return fmt.Errorf("switch to an unused id: %w", err)
}
