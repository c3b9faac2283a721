package seal

import "golang.org/x/sys/unix"

const (
	auditArch    = unix.AUDIT_ARCH_AARCH64
	firstForeign = 0x40000000 // this architecture has no such calls

	// threadFlags are the flags with which Go's runtime starts a thread
	// (runtime/os_linux.go, cloneFlags).
	threadFlags = goThread
)

// only returns no rows: this architecture has no calls of its own.
func only(Options) []row { return nil }

// onlyProbes is empty: this architecture has no calls of its own.
var onlyProbes []probe

// onlyActs is empty: this architecture has no calls of its own.
var onlyActs []act

// forks lists the calls that can create a process and then return twice.
var forks = []uintptr{unix.SYS_CLONE}
