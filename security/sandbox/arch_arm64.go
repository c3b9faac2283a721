package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch    = unix.AUDIT_ARCH_AARCH64
	firstForeign = 0x40000000 // this architecture has no such calls

	// threadFlags are the flags with which Go's runtime starts a thread
	// (runtime/os_linux.go, cloneFlags).
	threadFlags = goThread
)

// archRows returns no rows: this architecture has no calls of its own.
func archRows(Options) []row { return nil }

// archProbes is empty: this architecture has no calls of its own.
var archProbes []probe

// archDeathTests is empty: this architecture has no calls of its own.
var archDeathTests []deathTest

// forkCalls lists the calls that can create a process and then return twice.
var forkCalls = []uintptr{unix.SYS_CLONE}
