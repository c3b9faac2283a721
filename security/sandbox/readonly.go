package sandbox

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"schedrestd/security"
)

// writeRights lists, by version, every Landlock right to change files.
var writeRights = []struct {
	version int
	rights  uint64
}{
	{1, unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM},
	{2, unix.LANDLOCK_ACCESS_FS_REFER},
	{3, unix.LANDLOCK_ACCESS_FS_TRUNCATE},
	{5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
}

// ReadOnly confines a process that must start the machine's programs. Neither
// this process nor the programs that it starts can then change files (see
// denyWriting). ReadOnly installs no filter, because each program needs
// different system calls. If requireAll is set and the kernel has no Landlock,
// ReadOnly returns an error.
func ReadOnly(requireAll bool) (enforced Layers, err error) {
	if !security.Sandboxed {
		return enforced, nil
	}
	if enforced, err = denyWriting(); err == nil && requireAll {
		err = requireLandlock(enforced)
	}
	return enforced, err
}

// denyWriting denies every change to a file except writing to /dev/null. Files
// that are already open stay writable. If the kernel supports it, denyWriting
// also denies signals to processes outside the sandbox (see landlockRuleset).
// On a kernel without Landlock it denies nothing.
func denyWriting() (enforced Layers, err error) {
	version, err := landlockVersion()
	if err != nil || version == 0 {
		return enforced, err
	}
	var attr unix.LandlockRulesetAttr
	for _, w := range writeRights {
		if version >= w.version {
			attr.Handled_access_fs |= w.rights
		}
	}
	enforced = Layers{Landlock: uint8(version), Denies: DeniesWriting}
	if version >= sinceScope && allowsThreadSignals(version) {
		attr.Scoped |= unix.LANDLOCK_SCOPE_SIGNAL
		enforced.Denies |= DeniesSignals
	}
	set, err := makeRuleset(attr, version)
	if err != nil {
		return enforced, err
	}
	defer unix.Close(set)
	if err := exceptNull(set); err != nil {
		return enforced, err
	}
	if err := enterRuleset(set, version); err != nil {
		return enforced, err
	}
	return enforced, proveReadOnly()
}

// exceptNull allows writing to /dev/null, because the programs that the process
// starts have it as a standard descriptor.
func exceptNull(set int) error {
	fd, err := unix.Open(os.DevNull, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", os.DevNull, err)
	}
	defer unix.Close(fd)
	rule := unix.LandlockPathBeneathAttr{Allowed_access: unix.LANDLOCK_ACCESS_FS_WRITE_FILE, Parent_fd: int32(fd)}
	if _, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); e != 0 {
		return fmt.Errorf("add a Landlock rule: %w", e)
	}
	return nil
}

// proveReadOnly tries to open for writing a file that every user may write. It
// is needed because the gateway may itself run in a sandbox that handles system
// calls in place of the kernel. Such a sandbox may have accepted the ruleset
// without enforcing it.
func proveReadOnly() error {
	fd, err := unix.Open("/dev/zero", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	if err == unix.EACCES || err == unix.ENOENT {
		return nil
	}
	return fmt.Errorf("sandbox check of Landlock: opening a file for writing returned %w", orNoError(err))
}
