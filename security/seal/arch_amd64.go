package seal

import "golang.org/x/sys/unix"

const (
	auditArch    = unix.AUDIT_ARCH_X86_64
	firstForeign = 0x40000000 // __X32_SYSCALL_BIT: calls of x32 have the same architecture value

	// threadFlags are the flags with which Go's runtime starts a thread
	// (runtime/os_linux.go, cloneFlags; sys_linux_amd64.s adds SETTLS).
	threadFlags = goThread | unix.CLONE_SETTLS
)

// only returns the rows of calls that exist only on this architecture.
func only(Options) []row {
	return []row{
		{sys("open", unix.SYS_OPEN), eperm, nil, "probe: no file"},
		{sys("creat", unix.SYS_CREAT), eperm, nil, "probe: no file"},
		{sys("stat", unix.SYS_STAT), eperm, nil, looks},
		{sys("lstat", unix.SYS_LSTAT), eperm, nil, looks},
		{sys("access", unix.SYS_ACCESS), eperm, nil, looks},
		{sys("readlink", unix.SYS_READLINK), eperm, nil, looks},
	}
}

// onlyProbes lists the probes of calls that exist only on this architecture.
var onlyProbes = []probe{
	{name: "open / with open(2)", number: unix.SYS_OPEN, args: [6]uintptr{addressOf(&slash[0]), unix.O_RDONLY | unix.O_CLOEXEC}, undo: closeIt},
	{name: "create / with creat(2)", number: unix.SYS_CREAT, args: [6]uintptr{addressOf(&slash[0])}, undo: closeIt},
}

// onlyActs lists the death tests of calls that exist only on this architecture.
var onlyActs = []act{
	{"fork", unix.SYS_FORK, [6]uintptr{}},
	{"getpid as x32", 0x40000000 | unix.SYS_GETPID, [6]uintptr{}},
	{"dup2", unix.SYS_DUP2, [6]uintptr{none, none}},
	{"pipe", unix.SYS_PIPE, [6]uintptr{none}},
	{"unlink", unix.SYS_UNLINK, [6]uintptr{none}},
	{"rename", unix.SYS_RENAME, [6]uintptr{none, none}},
	{"symlink", unix.SYS_SYMLINK, [6]uintptr{none, none}},
	{"link", unix.SYS_LINK, [6]uintptr{none, none}},
	{"mkdir", unix.SYS_MKDIR, [6]uintptr{none}},
	{"chmod", unix.SYS_CHMOD, [6]uintptr{none}},
	{"chown", unix.SYS_CHOWN, [6]uintptr{none}},
	{"accept", unix.SYS_ACCEPT, [6]uintptr{none}},
	{"inotify_init", unix.SYS_INOTIFY_INIT, [6]uintptr{}},
	{"modify_ldt", unix.SYS_MODIFY_LDT, [6]uintptr{0, 0, 0}},
	{"arch_prctl", unix.SYS_ARCH_PRCTL, [6]uintptr{none}},
	{"iopl", unix.SYS_IOPL, [6]uintptr{none}},
	{"ioperm", unix.SYS_IOPERM, [6]uintptr{none, none}},
	{"time", unix.SYS_TIME, [6]uintptr{0}},
}

// forks lists the calls that can create a process and then return twice.
var forks = []uintptr{unix.SYS_CLONE, unix.SYS_FORK}
