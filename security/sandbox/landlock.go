package sandbox

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// landlockRights lists the rights that each version of Landlock added. Each
// right is one bit. If the kernel's version of Landlock is newer than all
// versions in this list, laterRights finds the rights that are missing here,
// and the sandbox denies them, too. For a process that connects to UNIX sockets
// (Options.Unix) the sandbox denies only the listed rights, because a later
// right covers such connections.
var landlockRights = []struct {
	version               int
	files, network, scope uint64
	denies                uint8
}{
	{1, 1<<13 - 1, 0, 0, DeniesFiles},
	{2, unix.LANDLOCK_ACCESS_FS_REFER, 0, 0, DeniesFiles},
	{3, unix.LANDLOCK_ACCESS_FS_TRUNCATE, 0, 0, DeniesFiles},
	{4, 0, unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, 0, DeniesTCP},
	{5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV, 0, 0, DeniesDevices},
	{6, 0, 0, unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, DeniesAbstract},
}

const (
	sinceScope   = 6 // LANDLOCK_SCOPE_*
	sinceTSync   = 8 // LANDLOCK_RESTRICT_SELF_TSYNC
	sameThreads  = 2 // bit from LANDLOCK_CREATE_RULESET_ERRATA: signals between threads of one process are permitted
	rulesetSize  = 24
	olderRuleset = 8 // size of the ruleset before version 4: files only
)

// denyFiles denies the following operations to every thread of the process:
//   - opening, executing, creating and removing files
//   - binding and connecting TCP sockets
//   - connecting to abstract UNIX sockets
//   - sending signals to other processes
//
// Which of these operations it can deny depends on the kernel (see
// landlockRuleset). No file and no address is exempt, but files that are
// already open stay open.
//
// denyFiles returns what it has denied. If the kernel has no Landlock, or
// Landlock is switched off, denyFiles denies nothing. The process must already
// have no_new_privs, and all its threads must have the same credentials.
func denyFiles(o Options) (Layers, error) {
	version, err := landlockVersion()
	if err != nil || version == 0 {
		return Layers{}, err
	}
	return denyAs(o, version)
}

// denyAs does what denyFiles does on a kernel with this version of Landlock.
func denyAs(o Options, version int) (Layers, error) {
	attr, denies := landlockRuleset(o, version)
	set, err := makeRuleset(attr, version)
	if err != nil {
		return Layers{}, err
	}
	defer unix.Close(set)
	if err := enterRuleset(set, version); err != nil {
		return Layers{}, err
	}
	return Layers{Landlock: uint8(version), Denies: denies}, proveLandlock(denies)
}

// makeRuleset creates a Landlock ruleset and returns its descriptor.
func makeRuleset(attr unix.LandlockRulesetAttr, version int) (int, error) {
	set, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), attrSize(version), 0)
	if e != 0 {
		return -1, fmt.Errorf("create a Landlock ruleset of version %d: %w", version, e)
	}
	return int(set), nil
}

// enterRuleset applies a ruleset to every thread of the process. The argument
// set is the ruleset's descriptor.
func enterRuleset(set, version int) error {
	var e syscall.Errno
	if version >= sinceTSync {
		_, _, e = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(set), unix.LANDLOCK_RESTRICT_SELF_TSYNC, 0)
	} else {
		_, _, e = syscall.AllThreadsSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(set), 0, 0)
	}
	if errors.Is(e, syscall.ENOTSUP) {
		return errors.New("enter a Landlock domain: this program was built with cgo, which cannot do it on all threads")
	}
	if e != 0 {
		return fmt.Errorf("enter a Landlock domain: %w", e)
	}
	return nil
}

// proveLandlock tries denied operations. It is needed because the gateway may
// itself run in a sandbox that handles system calls in place of the kernel.
// Such a sandbox may have accepted the ruleset without enforcing it. Call
// proveLandlock before installFilter. Otherwise the filter, not Landlock, would
// deny the operations.
func proveLandlock(denies uint8) error {
	fd, err := unix.Open("/", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	if err != unix.EACCES {
		return fmt.Errorf("sandbox check of Landlock: opening / returned %w", orNoError(err))
	}
	if denies&DeniesTCP == 0 {
		return nil
	}
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil // without a socket there is nothing to bind
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{}); err != unix.EACCES {
		return fmt.Errorf("sandbox check of Landlock: binding a TCP socket returned %w", orNoError(err))
	}
	return nil
}

var errNoError = errors.New("no error")

func orNoError(err error) error {
	if err == nil {
		return errNoError
	}
	return err
}

// landlockVersion returns the kernel's version of Landlock, or 0 if the kernel
// has no Landlock.
func landlockVersion() (int, error) {
	v, _, e := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch e {
	case 0:
		return int(v), nil
	case unix.ENOSYS, unix.EOPNOTSUPP, unix.EPERM: // not built in, switched off, or forbidden by a container's filter
		return 0, nil
	}
	return 0, fmt.Errorf("query Landlock's version: %w", e)
}

func attrSize(version int) uintptr {
	switch {
	case version < 4:
		return olderRuleset
	case version < sinceScope:
		return 2 * olderRuleset
	}
	return rulesetSize
}

// landlockRuleset returns a ruleset that denies everything that the given
// version of Landlock can deny, with two exceptions:
//   - With Options.Unix it denies only the rights in landlockRights.
//   - It denies signals to other processes only if hasScope and
//     allowsThreadSignals return true. On a kernel that lacks a fix, Landlock 6 and 7 would also deny the
//     signals with which Go's runtime preempts its own threads.
func landlockRuleset(o Options, version int) (attr unix.LandlockRulesetAttr, denies uint8) {
	for _, r := range landlockRights {
		if version < r.version {
			continue
		}
		attr.Handled_access_fs |= r.files
		attr.Handled_access_net |= r.network
		attr.Scoped |= r.scope
		denies |= r.denies
	}
	if version >= sinceScope && allowsThreadSignals(version) && hasScope(unix.LANDLOCK_SCOPE_SIGNAL) {
		attr.Scoped |= unix.LANDLOCK_SCOPE_SIGNAL
		denies |= DeniesSignals
	}
	if o.Unix {
		return attr, denies // no later rights: one of them covers connecting to UNIX sockets by path
	}
	last := landlockRights[len(landlockRights)-1].version
	if version > last {
		attr.Handled_access_fs |= laterRights(attr.Handled_access_fs, func(a *unix.LandlockRulesetAttr) *uint64 { return &a.Handled_access_fs })
		attr.Handled_access_net |= laterRights(attr.Handled_access_net, func(a *unix.LandlockRulesetAttr) *uint64 { return &a.Handled_access_net })
	}
	return attr, denies
}

// allowsThreadSignals reports whether a process may signal its own threads even
// if Landlock denies signals to other processes.
func allowsThreadSignals(version int) bool {
	if version >= sinceTSync {
		return true
	}
	fixed, _, e := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_ERRATA)
	return e == 0 && fixed&sameThreads != 0
}

// hasScope reports whether this kernel has a scope. Kernels of RHEL 9 report
// version 6, but some of them (from 5.14.0-603 on) lack LANDLOCK_SCOPE_SIGNAL.
func hasScope(scope uint64) bool {
	set, err := makeRuleset(unix.LandlockRulesetAttr{Scoped: scope}, sinceScope)
	if err != nil {
		return false
	}
	_ = unix.Close(set)
	return true
}

// laterRights returns the rights that this kernel has, but that are not in
// known. The bits of these rights are above those of all known rights.
func laterRights(known uint64, field func(*unix.LandlockRulesetAttr) *uint64) uint64 {
	var found uint64
	for bit := known + 1; bit != 0; bit <<= 1 {
		var attr unix.LandlockRulesetAttr
		*field(&attr) = bit
		set, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), rulesetSize, 0)
		if e != 0 {
			break // rights are numbered without gaps
		}
		_ = unix.Close(int(set))
		found |= bit
	}
	return found
}
