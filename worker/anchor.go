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

// AnchorArg is how the cage is to be closed and how many processes there may be in the namespace, when the program is started as an anchor.
func AnchorArg(args []string) (how string, ok bool) {
	if len(args) < 3 || args[len(args)-1] != ipc.AnchorMode {
		return "", false
	}
	return args[len(args)-2], true
}

// anchorFiles is how many descriptors an anchor may have open: its own, and the runtime's.
const anchorFiles = 16

// Anchor is the first process of the PID namespace that workers and keeper live in. It mounts the /proc that they see, which
// nobody outside could, becomes nobody, closes the cage behind itself, and says so. Then it waits until the parent ends,
// or has no more use for it, and with it end all of them. It gives its exit status.
func Anchor(how string) int {
	signal.Ignore() // of its children too: whoever is left to it is gone without a trace
	line := os.NewFile(ipc.WorkerFD, "line to the parent")
	said := ipc.AnchorHolds
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

// hold makes the process what an anchor is.
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
	_ = self.LimitPIDs(most) // where the kernel has that; each process has its own limit, too
	if err := becomeNobody(); err != nil {
		return err
	}
	// Whoever it is now has another uid than the one that the kernel noted for this.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("set the death signal: %w", err)
	}
	if err := self.Confine(anchorFiles, false); err != nil {
		return err
	}
	_, err = seal.Close(seal.Options{Keeper: true, Audit: ipc.Seal(s)&ipc.SealAudit != 0}, ipc.Seal(s)&ipc.SealRequire != 0)
	return err
}

// becomeNobody gives up root, for good: the process has ids that nobody else has, so that nobody can signal or trace it, no
// capability, and an empty bounding set. Who is not root stays who he is.
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
	for _, id := range become.Strangers() {
		n := int(id)
		if err = syscall.Setresgid(n, n, n); err == nil {
			err = syscall.Setresuid(n, n, n)
		}
		if err == nil {
			_, err = security.KeepCapabilities(0, 0) // and reads back that there is none
			return err
		}
	}
	return fmt.Errorf("switch to an unused id: %w", err)
}
