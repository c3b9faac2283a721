package seal

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// act is one system call that must kill the process that makes it. Without the
// filter the call does no harm: its object does not exist, or is the process
// itself.
type act struct {
	name   string
	number uintptr
	args   [6]uintptr
}

// These arguments are placeholders. Commit replaces them when it makes the
// call.
const (
	parent  = none - 1 // the parent's pid
	ownHigh = none - 2 // the process's own pid, with a bit set that the kernel ignores
	another = none - 3 // a pid other than the process's own, even if that is 1
	high    = uintptr(1) << 40
)

// acts lists, by purpose, calls that an attacker who captured a worker might
// try. Each of them must kill the process. The list is not complete: the filter
// kills the process for every call without a row in the table (see table.go).
var acts = append([]act{
	// Other processes.
	{"kill(1, 0)", unix.SYS_KILL, [6]uintptr{1, 0}},
	{"kill of the parent", unix.SYS_KILL, [6]uintptr{parent, 0}},
	{"kill of the own group", unix.SYS_KILL, [6]uintptr{0, 0}},
	{"tkill", unix.SYS_TKILL, [6]uintptr{1, 0}},
	{"tgkill of another process", unix.SYS_TGKILL, [6]uintptr{another, another, 0}},
	{"tgkill of the parent", unix.SYS_TGKILL, [6]uintptr{parent, parent, 0}},
	{"tgkill with more than 32 bits", unix.SYS_TGKILL, [6]uintptr{ownHigh, 1, 0}},
	{"rt_sigqueueinfo", unix.SYS_RT_SIGQUEUEINFO, [6]uintptr{1, 0}},
	{"rt_tgsigqueueinfo", unix.SYS_RT_TGSIGQUEUEINFO, [6]uintptr{1, 1, 0}},
	{"pidfd_open", unix.SYS_PIDFD_OPEN, [6]uintptr{1}},
	{"pidfd_getfd", unix.SYS_PIDFD_GETFD, [6]uintptr{none, 0, 0}},
	{"pidfd_send_signal", unix.SYS_PIDFD_SEND_SIGNAL, [6]uintptr{none, 0, 0, 0}},
	{"process_vm_readv", unix.SYS_PROCESS_VM_READV, [6]uintptr{1}},
	{"process_vm_writev", unix.SYS_PROCESS_VM_WRITEV, [6]uintptr{1}},
	{"process_madvise", unix.SYS_PROCESS_MADVISE, [6]uintptr{none}},
	{"kcmp", unix.SYS_KCMP, [6]uintptr{1, 1, 0, 0, 0}},
	{"prlimit64 of another", unix.SYS_PRLIMIT64, [6]uintptr{1, none}},
	{"setrlimit", unix.SYS_SETRLIMIT, [6]uintptr{none}},
	{"setpriority", unix.SYS_SETPRIORITY, [6]uintptr{none}},
	{"sched_setaffinity", unix.SYS_SCHED_SETAFFINITY, [6]uintptr{0, 0}},
	{"sched_setscheduler", unix.SYS_SCHED_SETSCHEDULER, [6]uintptr{0, none}},
	{"ioprio_set", unix.SYS_IOPRIO_SET, [6]uintptr{none}},
	{"wait4", unix.SYS_WAIT4, [6]uintptr{none, 0, unix.WNOHANG}},
	{"waitid", unix.SYS_WAITID, [6]uintptr{none}},
	{"setpgid", unix.SYS_SETPGID, [6]uintptr{none}},
	{"setsid", unix.SYS_SETSID, [6]uintptr{}},

	// New processes.
	{"fork by clone", unix.SYS_CLONE, [6]uintptr{uintptr(unix.SIGCHLD)}},
	{"clone of a thread with a namespace", unix.SYS_CLONE, [6]uintptr{threadFlags | unix.CLONE_NEWUSER}},
	{"clone without CLONE_THREAD", unix.SYS_CLONE, [6]uintptr{threadFlags&^unix.CLONE_THREAD&^unix.CLONE_VM | uintptr(unix.SIGCHLD) | unix.CLONE_SETTLS}},
	{"clone into a user namespace", unix.SYS_CLONE, [6]uintptr{unix.CLONE_NEWUSER | uintptr(unix.SIGCHLD)}},
	{"clone with more than 32 bits", unix.SYS_CLONE, [6]uintptr{high | uintptr(unix.SIGCHLD)}},

	// Namespaces, mounts, roots.
	{"unshare", unix.SYS_UNSHARE, [6]uintptr{0}},
	{"setns", unix.SYS_SETNS, [6]uintptr{none}},
	{"mount", unix.SYS_MOUNT, [6]uintptr{none, none, none}},
	{"umount2", unix.SYS_UMOUNT2, [6]uintptr{none}},
	{"pivot_root", unix.SYS_PIVOT_ROOT, [6]uintptr{none, none}},
	{"chroot", unix.SYS_CHROOT, [6]uintptr{none}},
	{"open_tree", unix.SYS_OPEN_TREE, [6]uintptr{none, none, none}},
	{"move_mount", unix.SYS_MOVE_MOUNT, [6]uintptr{none, none, none, none, none}},
	{"fsopen", unix.SYS_FSOPEN, [6]uintptr{none}},
	{"fsmount", unix.SYS_FSMOUNT, [6]uintptr{none}},
	{"fspick", unix.SYS_FSPICK, [6]uintptr{none, none}},
	{"mount_setattr", unix.SYS_MOUNT_SETATTR, [6]uintptr{none, none}},
	{"statmount", unix.SYS_STATMOUNT, [6]uintptr{none}},
	{"listmount", unix.SYS_LISTMOUNT, [6]uintptr{none}},
	{"sethostname", unix.SYS_SETHOSTNAME, [6]uintptr{none, none}},
	{"setdomainname", unix.SYS_SETDOMAINNAME, [6]uintptr{none, none}},

	// Large and new parts of the kernel.
	{"io_uring_setup", unix.SYS_IO_URING_SETUP, [6]uintptr{0}},
	{"io_uring_enter", unix.SYS_IO_URING_ENTER, [6]uintptr{none}},
	{"io_uring_register", unix.SYS_IO_URING_REGISTER, [6]uintptr{none}},
	{"io_setup", unix.SYS_IO_SETUP, [6]uintptr{0, none}},
	{"bpf", unix.SYS_BPF, [6]uintptr{none}},
	{"keyctl", unix.SYS_KEYCTL, [6]uintptr{none}},
	{"add_key", unix.SYS_ADD_KEY, [6]uintptr{none}},
	{"request_key", unix.SYS_REQUEST_KEY, [6]uintptr{none}},
	{"userfaultfd", unix.SYS_USERFAULTFD, [6]uintptr{none}},
	{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, [6]uintptr{none}},
	{"seccomp", unix.SYS_SECCOMP, [6]uintptr{unix.SECCOMP_GET_ACTION_AVAIL}},
	{"landlock_create_ruleset", unix.SYS_LANDLOCK_CREATE_RULESET, [6]uintptr{0, 0, 1}},
	{"landlock_restrict_self", unix.SYS_LANDLOCK_RESTRICT_SELF, [6]uintptr{none}},
	{"lsm_set_self_attr", unix.SYS_LSM_SET_SELF_ATTR, [6]uintptr{none}},
	{"fanotify_init", unix.SYS_FANOTIFY_INIT, [6]uintptr{none}},
	{"fanotify_mark", unix.SYS_FANOTIFY_MARK, [6]uintptr{none}},
	{"inotify_init1", unix.SYS_INOTIFY_INIT1, [6]uintptr{none}},
	{"name_to_handle_at", unix.SYS_NAME_TO_HANDLE_AT, [6]uintptr{none, none, none}},
	{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, [6]uintptr{none, none, none}},
	{"vmsplice", unix.SYS_VMSPLICE, [6]uintptr{none}},
	{"tee", unix.SYS_TEE, [6]uintptr{none, none}},
	{"futex(FUTEX_LOCK_PI)", unix.SYS_FUTEX, [6]uintptr{0, 6 | 128}},
	{"futex(FUTEX_CMP_REQUEUE_PI)", unix.SYS_FUTEX, [6]uintptr{0, 12 | 128}},
	{"futex between processes", unix.SYS_FUTEX, [6]uintptr{0, 1, 0}},
	{"set_robust_list", unix.SYS_SET_ROBUST_LIST, [6]uintptr{0, 0}},
	{"signalfd4", unix.SYS_SIGNALFD4, [6]uintptr{none, none}},
	{"timerfd_create", unix.SYS_TIMERFD_CREATE, [6]uintptr{none}},
	{"timer_create", unix.SYS_TIMER_CREATE, [6]uintptr{none}},
	{"setitimer", unix.SYS_SETITIMER, [6]uintptr{none}},

	// Memory.
	{"memfd_create", unix.SYS_MEMFD_CREATE, [6]uintptr{none, none}},
	{"memfd_secret", unix.SYS_MEMFD_SECRET, [6]uintptr{none}},
	{"mmap of a file", unix.SYS_MMAP, [6]uintptr{0, 4096, unix.PROT_READ, unix.MAP_PRIVATE, none}},
	{"mmap, shared", unix.SYS_MMAP, [6]uintptr{0, 4096, unix.PROT_READ, unix.MAP_SHARED | unix.MAP_ANON, none}},
	{"mremap", unix.SYS_MREMAP, [6]uintptr{none, none, none, 0}},
	{"remap_file_pages", unix.SYS_REMAP_FILE_PAGES, [6]uintptr{none, none, none}},
	{"mlock", unix.SYS_MLOCK, [6]uintptr{0, 0}},
	{"brk", unix.SYS_BRK, [6]uintptr{0}},
	{"madvise(MADV_HWPOISON)", unix.SYS_MADVISE, [6]uintptr{0, 0, unix.MADV_HWPOISON}},
	{"madvise(MADV_MERGEABLE)", unix.SYS_MADVISE, [6]uintptr{0, 0, unix.MADV_MERGEABLE}},
	{"shmget", unix.SYS_SHMGET, [6]uintptr{none, 0, 0}},
	{"shmat", unix.SYS_SHMAT, [6]uintptr{none, 0, 0}},
	{"msgget", unix.SYS_MSGGET, [6]uintptr{none, 0}},
	{"semget", unix.SYS_SEMGET, [6]uintptr{none, 0, 0}},
	{"mq_open", unix.SYS_MQ_OPEN, [6]uintptr{none}},
	{"move_pages", unix.SYS_MOVE_PAGES, [6]uintptr{1, 0, 0, 0, 0, 0}},
	{"mbind", unix.SYS_MBIND, [6]uintptr{0, 0, none}},

	// Files and descriptors.
	{"ioctl(TIOCSTI)", unix.SYS_IOCTL, [6]uintptr{none, unix.TIOCSTI}},
	{"ioctl(FIONREAD)", unix.SYS_IOCTL, [6]uintptr{none, unix.TIOCINQ}},
	{"fcntl(F_SETOWN)", unix.SYS_FCNTL, [6]uintptr{none, unix.F_SETOWN, 1}},
	{"fcntl(F_SETOWN_EX)", unix.SYS_FCNTL, [6]uintptr{none, unix.F_SETOWN_EX, 0}},
	{"fcntl(F_SETSIG)", unix.SYS_FCNTL, [6]uintptr{none, unix.F_SETSIG, 9}},
	{"fcntl(F_SETLEASE)", unix.SYS_FCNTL, [6]uintptr{none, unix.F_SETLEASE, unix.F_RDLCK}},
	{"fcntl(F_NOTIFY)", unix.SYS_FCNTL, [6]uintptr{none, unix.F_NOTIFY, 0}},
	{"fcntl(F_SETLK)", unix.SYS_FCNTL, [6]uintptr{none, unix.F_SETLK, 0}},
	{"fcntl(F_ADD_SEALS)", unix.SYS_FCNTL, [6]uintptr{none, unix.F_ADD_SEALS, 0}},
	{"fcntl(F_SETPIPE_SZ)", unix.SYS_FCNTL, [6]uintptr{none, unix.F_SETPIPE_SZ, 0}},
	{"fcntl(F_SETFL, O_ASYNC)", unix.SYS_FCNTL, [6]uintptr{none, unix.F_SETFL, unix.O_ASYNC}},
	{"fcntl with more than 32 bits", unix.SYS_FCNTL, [6]uintptr{none, high | unix.F_GETFL}},
	{"dup", unix.SYS_DUP, [6]uintptr{none}},
	{"dup3", unix.SYS_DUP3, [6]uintptr{none, none, 0}},
	{"unlinkat", unix.SYS_UNLINKAT, [6]uintptr{none, none}},
	{"renameat2", unix.SYS_RENAMEAT2, [6]uintptr{none, none, none, none}},
	{"linkat", unix.SYS_LINKAT, [6]uintptr{none, none, none, none}},
	{"symlinkat", unix.SYS_SYMLINKAT, [6]uintptr{none, none, none}},
	{"mkdirat", unix.SYS_MKDIRAT, [6]uintptr{none, none}},
	{"mknodat", unix.SYS_MKNODAT, [6]uintptr{none, none}},
	{"fchmod", unix.SYS_FCHMOD, [6]uintptr{none}},
	{"fchmodat", unix.SYS_FCHMODAT, [6]uintptr{none, none}},
	{"fchown", unix.SYS_FCHOWN, [6]uintptr{none}},
	{"fchownat", unix.SYS_FCHOWNAT, [6]uintptr{none, none}},
	{"truncate", unix.SYS_TRUNCATE, [6]uintptr{none}},
	{"ftruncate", unix.SYS_FTRUNCATE, [6]uintptr{none}},
	{"fallocate", unix.SYS_FALLOCATE, [6]uintptr{none}},
	{"pwrite64", unix.SYS_PWRITE64, [6]uintptr{none}},
	{"getdents64", unix.SYS_GETDENTS64, [6]uintptr{none}},
	{"getcwd", unix.SYS_GETCWD, [6]uintptr{none, 0}},
	{"chdir", unix.SYS_CHDIR, [6]uintptr{none}},
	{"fchdir", unix.SYS_FCHDIR, [6]uintptr{none}},
	{"statfs", unix.SYS_STATFS, [6]uintptr{none}},
	{"utimensat", unix.SYS_UTIMENSAT, [6]uintptr{none, none}},
	{"setxattr", unix.SYS_SETXATTR, [6]uintptr{none, none}},
	{"flock", unix.SYS_FLOCK, [6]uintptr{none, none}},
	{"umask", unix.SYS_UMASK, [6]uintptr{0o777}},

	// Connections.
	{"bind", unix.SYS_BIND, [6]uintptr{none}},
	{"listen", unix.SYS_LISTEN, [6]uintptr{none}},
	{"accept4", unix.SYS_ACCEPT4, [6]uintptr{none}},
	{"sendto", unix.SYS_SENDTO, [6]uintptr{none}},
	{"sendmmsg", unix.SYS_SENDMMSG, [6]uintptr{none}},
	{"recvmmsg", unix.SYS_RECVMMSG, [6]uintptr{none}},
	{"sendmsg", unix.SYS_SENDMSG, [6]uintptr{none}},
	{"recvmsg from a client", unix.SYS_RECVMSG, [6]uintptr{none}},
	{"close of the channel to the parent", unix.SYS_CLOSE, [6]uintptr{Channel}},
	{"close of it with more than 32 bits", unix.SYS_CLOSE, [6]uintptr{high | Channel}},
	{"setsockopt(SO_ATTACH_FILTER)", unix.SYS_SETSOCKOPT, [6]uintptr{none, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER}},
	{"setsockopt(SO_ATTACH_BPF)", unix.SYS_SETSOCKOPT, [6]uintptr{none, unix.SOL_SOCKET, unix.SO_ATTACH_BPF}},
	{"setsockopt(SO_BINDTODEVICE)", unix.SYS_SETSOCKOPT, [6]uintptr{none, unix.SOL_SOCKET, unix.SO_BINDTODEVICE}},
	{"setsockopt(SO_ZEROCOPY)", unix.SYS_SETSOCKOPT, [6]uintptr{none, unix.SOL_SOCKET, unix.SO_ZEROCOPY}},
	{"setsockopt(TCP_ULP)", unix.SYS_SETSOCKOPT, [6]uintptr{none, unix.IPPROTO_TCP, unix.TCP_ULP}},
	{"setsockopt(TCP_REPAIR)", unix.SYS_SETSOCKOPT, [6]uintptr{none, unix.IPPROTO_TCP, unix.TCP_REPAIR}},
	{"setsockopt(TCP_FASTOPEN)", unix.SYS_SETSOCKOPT, [6]uintptr{none, unix.IPPROTO_TCP, unix.TCP_FASTOPEN}},
	{"setsockopt(IPPROTO_IP)", unix.SYS_SETSOCKOPT, [6]uintptr{none, unix.IPPROTO_IP, unix.IP_OPTIONS}},
	{"setsockopt(SOL_ALG)", unix.SYS_SETSOCKOPT, [6]uintptr{none, unix.SOL_ALG, 1}},
	{"getsockopt(SO_GET_FILTER)", unix.SYS_GETSOCKOPT, [6]uintptr{none, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER}},
	{"getsockopt(SO_PEERPIDFD)", unix.SYS_GETSOCKOPT, [6]uintptr{none, unix.SOL_SOCKET, unix.SO_PEERPIDFD}},
	{"getsockopt(TCP_INFO)", unix.SYS_GETSOCKOPT, [6]uintptr{none, unix.IPPROTO_TCP, unix.TCP_INFO}},

	// The machine, and the process's own attributes.
	{"prctl(PR_SET_DUMPABLE)", unix.SYS_PRCTL, [6]uintptr{unix.PR_SET_DUMPABLE, 0}},
	{"prctl(PR_SET_NAME)", unix.SYS_PRCTL, [6]uintptr{unix.PR_SET_NAME, none}},
	{"prctl(PR_SET_PTRACER)", unix.SYS_PRCTL, [6]uintptr{unix.PR_SET_PTRACER, 0}},
	{"prctl(PR_CAP_AMBIENT)", unix.SYS_PRCTL, [6]uintptr{unix.PR_CAP_AMBIENT, none}},
	{"capset", unix.SYS_CAPSET, [6]uintptr{none, none}},
	{"personality", unix.SYS_PERSONALITY, [6]uintptr{0xffffffff}},
	{"reboot", unix.SYS_REBOOT, [6]uintptr{none, none}},
	{"init_module", unix.SYS_INIT_MODULE, [6]uintptr{none, 0, none}},
	{"finit_module", unix.SYS_FINIT_MODULE, [6]uintptr{none}},
	{"delete_module", unix.SYS_DELETE_MODULE, [6]uintptr{none}},
	{"kexec_load", unix.SYS_KEXEC_LOAD, [6]uintptr{none, none, none, none}},
	{"swapon", unix.SYS_SWAPON, [6]uintptr{none}},
	{"swapoff", unix.SYS_SWAPOFF, [6]uintptr{none}},
	{"syslog", unix.SYS_SYSLOG, [6]uintptr{none}},
	{"acct", unix.SYS_ACCT, [6]uintptr{none}},
	{"quotactl", unix.SYS_QUOTACTL, [6]uintptr{none}},
	{"settimeofday", unix.SYS_SETTIMEOFDAY, [6]uintptr{none}},
	{"clock_settime", unix.SYS_CLOCK_SETTIME, [6]uintptr{none, none}},
	{"adjtimex", unix.SYS_ADJTIMEX, [6]uintptr{none}},
	{"sysinfo", unix.SYS_SYSINFO, [6]uintptr{none}},
	{"a system call number of the future", 1000, [6]uintptr{}},
}, onlyActs...)

// bornOf is the pid of the parent process. It is read at the start, while
// getppid(2) is still allowed.
var bornOf = uintptr(unix.Getppid())

// Acts returns the names that Commit accepts.
func Acts() []string {
	names := make([]string, len(acts))
	for i, a := range acts {
		names[i] = a.name
	}
	return names
}

// Commit makes the system call with that name. In the sandbox the call kills
// the process with SIGSYS. If the process survives, Commit returns an error
// with the kernel's result.
func Commit(name string) error {
	for _, a := range acts {
		if a.name == name {
			return fmt.Errorf("%s returned (%w) instead of killing the process", a.name, a.do())
		}
	}
	return fmt.Errorf("no death test is named %q", name)
}

func (a act) do() error {
	for i, v := range a.args {
		switch v {
		case parent:
			a.args[i] = bornOf
		case ownHigh:
			a.args[i] = high | uintptr(unix.Getpid())
		case another:
			a.args[i] = uintptr(unix.Getpid()) + 1
		}
	}
	r, _, e := unix.RawSyscall6(a.number, a.args[0], a.args[1], a.args[2], a.args[3], a.args[4], a.args[5])
	if e != 0 {
		return e
	}
	if r == 0 && slices.Contains(forks, a.number) { // this is the new process, which must exit here
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	return fmt.Errorf("%#x", r)
}
