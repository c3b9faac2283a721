package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch    = unix.AUDIT_ARCH_X86_64
	firstForeign = 0x40000000 // __X32_SYSCALL_BIT: x32 calls have the same architecture value as 64-bit calls

	// threadFlags are the flags with which Go's runtime starts a thread
	// (runtime/os_linux.go, cloneFlags; sys_linux_amd64.s adds SETTLS).
	threadFlags = goThread | unix.CLONE_SETTLS
)

// archRows returns the rows of calls that exist only on this architecture.
func archRows(Options) []row {
	return []row{
		{sys("open", unix.SYS_OPEN), eperm, nil, "probe: no file"},
		{sys("creat", unix.SYS_CREAT), eperm, nil, "probe: no file"},
		{sys("stat", unix.SYS_STAT), eperm, nil, fileLookups},
		{sys("lstat", unix.SYS_LSTAT), eperm, nil, fileLookups},
		{sys("access", unix.SYS_ACCESS), eperm, nil, fileLookups},
		{sys("readlink", unix.SYS_READLINK), eperm, nil, fileLookups},
	}
}

// archProbes lists the probes of calls that exist only on this architecture.
var archProbes = []probe{
	{name: "open / with open(2)", number: unix.SYS_OPEN, args: [6]uintptr{addressOf(&rootPath[0]), unix.O_RDONLY | unix.O_CLOEXEC}, undo: closeFD},
	{name: "create / with creat(2)", number: unix.SYS_CREAT, args: [6]uintptr{addressOf(&rootPath[0])}, undo: closeFD},
}

// archDeathTests lists the death tests of calls that exist only on this
// architecture.
var archDeathTests = []deathTest{
	{"fork", unix.SYS_FORK, [6]uintptr{}},
	{"getpid as x32", 0x40000000 | unix.SYS_GETPID, [6]uintptr{}},
	{"dup2", unix.SYS_DUP2, [6]uintptr{invalid, invalid}},
	{"pipe", unix.SYS_PIPE, [6]uintptr{invalid}},
	{"unlink", unix.SYS_UNLINK, [6]uintptr{invalid}},
	{"rename", unix.SYS_RENAME, [6]uintptr{invalid, invalid}},
	{"symlink", unix.SYS_SYMLINK, [6]uintptr{invalid, invalid}},
	{"link", unix.SYS_LINK, [6]uintptr{invalid, invalid}},
	{"mkdir", unix.SYS_MKDIR, [6]uintptr{invalid}},
	{"chmod", unix.SYS_CHMOD, [6]uintptr{invalid}},
	{"chown", unix.SYS_CHOWN, [6]uintptr{invalid}},
	{"accept", unix.SYS_ACCEPT, [6]uintptr{invalid}},
	{"inotify_init", unix.SYS_INOTIFY_INIT, [6]uintptr{}},
	{"modify_ldt", unix.SYS_MODIFY_LDT, [6]uintptr{0, 0, 0}},
	{"arch_prctl", unix.SYS_ARCH_PRCTL, [6]uintptr{invalid}},
	{"iopl", unix.SYS_IOPL, [6]uintptr{invalid}},
	{"ioperm", unix.SYS_IOPERM, [6]uintptr{invalid, invalid}},
	{"time", unix.SYS_TIME, [6]uintptr{0}},
}

// forkCalls lists the calls that can create a process and then return twice.
var forkCalls = []uintptr{unix.SYS_CLONE, unix.SYS_FORK}
