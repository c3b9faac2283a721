package security

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
)

// Capabilities is a set of capabilities. Bit n stands for the capability that
// has the number n in the kernel.
type Capabilities uint64

// Caps returns the set of the given capabilities (unix.CAP_…).
func Caps(list ...int) Capabilities {
	var c Capabilities
	for _, n := range list {
		c |= 1 << n
	}
	return c
}

// AllCapabilities returns every capability that this kernel has.
func AllCapabilities() Capabilities { all, _ := readBounding(); return all }

// readBounding returns every capability that this kernel has, and those in the
// bounding set of the calling thread.
func readBounding() (all, bounding Capabilities) {
	for n := 0; n < 64; n++ {
		has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(n), 0, 0, 0)
		if err != nil { // n is past the last capability
			break
		}
		all, bounding = all|1<<n, bounding|Capabilities(has)<<n
	}
	return all, bounding
}

// Has reports whether capability n is in the set.
func (c Capabilities) Has(n int) bool { return c&(1<<n) != 0 }

// String returns the set as /proc shows it: 16 hexadecimal digits.
func (c Capabilities) String() string { return fmt.Sprintf("%016x", uint64(c)) }

// capsetData returns the data for capset(2). The argument held is the permitted
// and the effective set, and pass is the inheritable set.
func capsetData(held, pass Capabilities) *[2]unix.CapUserData {
	return &[2]unix.CapUserData{
		{Effective: uint32(held), Permitted: uint32(held), Inheritable: uint32(pass)},
		{Effective: uint32(held >> 32), Permitted: uint32(held >> 32), Inheritable: uint32(pass >> 32)},
	}
}

// EffectiveCapabilities returns the effective capabilities of the calling
// thread.
func EffectiveCapabilities() (Capabilities, error) {
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var d [2]unix.CapUserData
	if err := unix.Capget(&h, &d[0]); err != nil {
		return 0, fmt.Errorf("read the capabilities: %w", err)
	}
	return Capabilities(d[0].Effective) | Capabilities(d[1].Effective)<<32, nil
}

// PassCapabilities makes the calling thread pass exactly these capabilities to
// the programs that it executes as root from now on. The programs get the
// capabilities even if the bounding set is emptied afterwards.
func PassCapabilities(pass Capabilities) error {
	held, err := EffectiveCapabilities()
	if err != nil {
		return err
	}
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capset(&h, &capsetData(held, pass)[0]); err != nil {
		return fmt.Errorf("pass the capabilities %s: %w", pass, err)
	}
	return nil
}

// KeepCapabilities drops all capabilities except those in keep, on every
// thread. It returns the capabilities in keep that the process has, and
// verifies in /proc that each thread has exactly the returned ones. Programs
// that the process later executes as root get at most the capabilities that are
// in both pass and keep.
//
// If the parent kept the other capabilities, an attacker who takes over the
// parent through a fault in package ipc could load kernel modules or read every
// file.
func KeepCapabilities(keep, pass Capabilities) (Capabilities, error) {
	held, err := EffectiveCapabilities()
	if err != nil {
		return 0, err
	}
	keep &= held
	pass &= keep
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	set := func(held Capabilities) syscall.Errno {
		_, _, e := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&h)), uintptr(unsafe.Pointer(capsetData(held, pass))), 0)
		return e
	}
	if pass != 0 {
		// The inheritable set must be filled before forbidGains empties the
		// bounding set: afterwards, no capability can become inheritable.
		if e := set(held); e != 0 && e != syscall.ENOTSUP {
			return 0, fmt.Errorf("pass capabilities: %w", e)
		}
	}
	forbidden, err := forbidGains(held)
	if err != nil {
		return 0, err
	}
	e := set(keep)
	switch {
	case e == syscall.ENOTSUP && held == keep:
		// In a build with cgo the runtime can't reach all threads. But nothing
		// has to be dropped here: the effective set is already right, and
		// checkThreads verifies the permitted set.
	case e == syscall.ENOTSUP:
		return 0, errs.New(errs.Unsupported, "capabilities can't be dropped: this program was built with cgo").
			WithHint("build it with CGO_ENABLED=0, as make build does")
	case e != 0:
		return 0, fmt.Errorf("drop capabilities: %w", e)
	}
	want := map[string]string{"CapPrm": keep.String(), "CapEff": keep.String(), "CapInh": pass.String(), "CapAmb": Capabilities(0).String()}
	if forbidden {
		want["NoNewPrivs"] = "1"
	}
	if forbidden && held.Has(unix.CAP_SETPCAP) {
		want["CapBnd"] = Capabilities(0).String()
	}
	return keep, checkThreads(want)
}

// forbidGains keeps every thread from regaining capabilities. Otherwise a
// thread with uid 0 would regain them by executing a program. forbidGains sets
// no_new_privs and, if CAP_SETPCAP is in held, empties the bounding set. In a
// build with cgo it does nothing and returns false, because the runtime can't
// reach all threads.
func forbidGains(held Capabilities) (bool, error) {
	_, _, e := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0)
	switch {
	case e == syscall.ENOTSUP:
		return false, nil
	case e != 0:
		return false, fmt.Errorf("set no_new_privs: %w", e)
	case !held.Has(unix.CAP_SETPCAP):
		return true, nil
	}
	for all, n := AllCapabilities(), 0; all.Has(n); n++ {
		if _, _, e := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, uintptr(n), 0, 0, 0, 0); e != 0 {
			return false, fmt.Errorf("drop capability %d from the bounding set: %w", n, e)
		}
	}
	return true, nil
}

// checkThreads verifies the status of every thread.
func checkThreads(want map[string]string) error {
	threads, err := ThreadStatus("/proc/self/task")
	if err != nil {
		return err
	}
	for id, status := range threads {
		for name, value := range want {
			if got := status.Value(name); got != value {
				return fmt.Errorf("thread %s has %s %s, not %s, after privileges were dropped", id, name, got, value)
			}
		}
	}
	return nil
}

// DropBounding empties the bounding set of the calling thread, so that no
// program that the thread starts can get a capability, not even as root. Other
// running threads keep their bounding sets. DropBounding reports whether the
// calling thread's bounding set is now empty. Without CAP_SETPCAP it changes
// nothing, but a service manager may already have emptied the set.
func DropBounding() (bool, error) {
	held, err := EffectiveCapabilities()
	all, bounding := readBounding()
	if err != nil || bounding == 0 || !held.Has(unix.CAP_SETPCAP) {
		return bounding == 0, err
	}
	for n := 0; all.Has(n); n++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(n), 0, 0, 0); err != nil {
			return false, fmt.Errorf("drop capability %d from the bounding set: %w", n, err)
		}
	}
	return true, nil
}

// ThreadStatus reads the status files of all threads in dir, which is a
// directory such as /proc/self/task. The result is indexed by thread id.
func ThreadStatus(dir string) (map[string]Status, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list threads: %w", err)
	}
	threads := map[string]Status{}
	for _, e := range list {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		status, err := readStatus(dir + "/" + e.Name() + "/status")
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // that thread has ended
		}
		if err != nil {
			return nil, err
		}
		threads[e.Name()] = status
	}
	return threads, nil
}

// Status is the text of a status file of /proc: lines of "Name:<tab>values".
type Status string

// Value returns the values of the line with the given name, separated by one
// blank each. It returns "" if there is no such line after the first, which is
// the name of the program.
func (s Status) Value(name string) string {
	_, rest, _ := strings.Cut(string(s), "\n"+name+":")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.Join(strings.Fields(line), " ")
}

// readStatus reads a status file of /proc.
func readStatus(path string) (Status, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the status of a thread: %w", err)
	}
	return Status(raw), nil
}
