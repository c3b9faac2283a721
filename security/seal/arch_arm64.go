package seal

import "golang.org/x/sys/unix"

const (
	auditArch    = unix.AUDIT_ARCH_AARCH64
	firstForeign = 0x40000000 // no such calls here

	// threadFlags is what Go's runtime starts a thread with (runtime/os_linux.go, cloneFlags).
	threadFlags = goThread
)

// only are the rows of calls that this architecture alone has: the kernel gave it no old ones.
func only(Options) []row { return nil }

// onlyProbes are those of calls that this architecture alone has.
var onlyProbes []probe

// onlyActs are those of calls that this architecture alone has.
var onlyActs []act

// forks are the calls that return twice.
var forks = []uintptr{unix.SYS_CLONE}
