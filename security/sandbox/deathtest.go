package sandbox

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// deathTest is a system call for which the filter must kill the process.
// Without the filter the call does no harm, because its target does not exist
// or is the process itself.
type deathTest struct {
	name   string
	number uintptr
	args   [6]uintptr
}

// These arguments are placeholders. makeCall replaces them.
const (
	argParentPID  = invalid - 1 // the parent's pid
	argOwnPIDHigh = invalid - 2 // the process's own pid, with a bit set that the kernel ignores
	argOtherPID   = invalid - 3 // a pid other than the process's own, which may be 1
	highBit       = uintptr(1) << 40
)

// deathTests lists, by purpose, calls that an attacker who captured a worker
// might try; archDeathTests has more of them. Each must kill the process. Many
// other calls kill it, too: every call without a row in the table (see
// table.go).
var deathTests = []deathTest{
	// Other processes.
	{"kill(1, 0)", unix.SYS_KILL, [6]uintptr{1, 0}},
	{"kill of the parent", unix.SYS_KILL, [6]uintptr{argParentPID, 0}},
	{"kill of the own group", unix.SYS_KILL, [6]uintptr{0, 0}},
	{"tkill", unix.SYS_TKILL, [6]uintptr{1, 0}},
	{"tgkill of another process", unix.SYS_TGKILL, [6]uintptr{argOtherPID, argOtherPID, 0}},
	{"tgkill of the parent", unix.SYS_TGKILL, [6]uintptr{argParentPID, argParentPID, 0}},
	{"tgkill with more than 32 bits", unix.SYS_TGKILL, [6]uintptr{argOwnPIDHigh, 1, 0}},
	{"rt_sigqueueinfo", unix.SYS_RT_SIGQUEUEINFO, [6]uintptr{1, 0}},
	{"rt_tgsigqueueinfo", unix.SYS_RT_TGSIGQUEUEINFO, [6]uintptr{1, 1, 0}},
	{"pidfd_open", unix.SYS_PIDFD_OPEN, [6]uintptr{1}},
	{"pidfd_getfd", unix.SYS_PIDFD_GETFD, [6]uintptr{invalid, 0, 0}},
	{"pidfd_send_signal", unix.SYS_PIDFD_SEND_SIGNAL, [6]uintptr{invalid, 0, 0, 0}},
	{"process_vm_readv", unix.SYS_PROCESS_VM_READV, [6]uintptr{1}},
	{"process_vm_writev", unix.SYS_PROCESS_VM_WRITEV, [6]uintptr{1}},
	{"process_madvise", unix.SYS_PROCESS_MADVISE, [6]uintptr{invalid}},
	{"kcmp", unix.SYS_KCMP, [6]uintptr{1, 1, 0, 0, 0}},
	{"prlimit64 of another", unix.SYS_PRLIMIT64, [6]uintptr{1, invalid}},
	{"setrlimit", unix.SYS_SETRLIMIT, [6]uintptr{invalid}},
	{"setpriority", unix.SYS_SETPRIORITY, [6]uintptr{invalid}},
	{"sched_setaffinity", unix.SYS_SCHED_SETAFFINITY, [6]uintptr{0, 0}},
	{"sched_setscheduler", unix.SYS_SCHED_SETSCHEDULER, [6]uintptr{0, invalid}},
	{"ioprio_set", unix.SYS_IOPRIO_SET, [6]uintptr{invalid}},
	{"wait4", unix.SYS_WAIT4, [6]uintptr{invalid, 0, unix.WNOHANG}},
	{"waitid", unix.SYS_WAITID, [6]uintptr{invalid}},
	{"setpgid", unix.SYS_SETPGID, [6]uintptr{invalid}},
	{"setsid", unix.SYS_SETSID, [6]uintptr{}},

	// New processes.
	{"fork by clone", unix.SYS_CLONE, [6]uintptr{uintptr(unix.SIGCHLD)}},
	{"clone of a thread with a namespace", unix.SYS_CLONE, [6]uintptr{threadFlags | unix.CLONE_NEWUSER}},
	{"clone without CLONE_THREAD", unix.SYS_CLONE, [6]uintptr{threadFlags&^unix.CLONE_THREAD&^unix.CLONE_VM | uintptr(unix.SIGCHLD) | unix.CLONE_SETTLS}},
	{"clone into a user namespace", unix.SYS_CLONE, [6]uintptr{unix.CLONE_NEWUSER | uintptr(unix.SIGCHLD)}},
	{"clone with more than 32 bits", unix.SYS_CLONE, [6]uintptr{highBit | uintptr(unix.SIGCHLD)}},

	// Namespaces, mounts, roots.
	{"unshare", unix.SYS_UNSHARE, [6]uintptr{0}},
	{"setns", unix.SYS_SETNS, [6]uintptr{invalid}},
	{"mount", unix.SYS_MOUNT, [6]uintptr{invalid, invalid, invalid}},
	{"umount2", unix.SYS_UMOUNT2, [6]uintptr{invalid}},
	{"pivot_root", unix.SYS_PIVOT_ROOT, [6]uintptr{invalid, invalid}},
	{"chroot", unix.SYS_CHROOT, [6]uintptr{invalid}},
	{"open_tree", unix.SYS_OPEN_TREE, [6]uintptr{invalid, invalid, invalid}},
	{"move_mount", unix.SYS_MOVE_MOUNT, [6]uintptr{invalid, invalid, invalid, invalid, invalid}},
	{"fsopen", unix.SYS_FSOPEN, [6]uintptr{invalid}},
	{"fsmount", unix.SYS_FSMOUNT, [6]uintptr{invalid}},
	{"fspick", unix.SYS_FSPICK, [6]uintptr{invalid, invalid}},
	{"mount_setattr", unix.SYS_MOUNT_SETATTR, [6]uintptr{invalid, invalid}},
	{"statmount", unix.SYS_STATMOUNT, [6]uintptr{invalid}},
	{"listmount", unix.SYS_LISTMOUNT, [6]uintptr{invalid}},
	{"sethostname", unix.SYS_SETHOSTNAME, [6]uintptr{invalid, invalid}},
	{"setdomainname", unix.SYS_SETDOMAINNAME, [6]uintptr{invalid, invalid}},

	// Large and new parts of the kernel.
	{"io_uring_setup", unix.SYS_IO_URING_SETUP, [6]uintptr{0}},
	{"io_uring_enter", unix.SYS_IO_URING_ENTER, [6]uintptr{invalid}},
	{"io_uring_register", unix.SYS_IO_URING_REGISTER, [6]uintptr{invalid}},
	{"io_setup", unix.SYS_IO_SETUP, [6]uintptr{0, invalid}},
	{"bpf", unix.SYS_BPF, [6]uintptr{invalid}},
	{"keyctl", unix.SYS_KEYCTL, [6]uintptr{invalid}},
	{"add_key", unix.SYS_ADD_KEY, [6]uintptr{invalid}},
	{"request_key", unix.SYS_REQUEST_KEY, [6]uintptr{invalid}},
	{"userfaultfd", unix.SYS_USERFAULTFD, [6]uintptr{invalid}},
	{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, [6]uintptr{invalid}},
	{"seccomp", unix.SYS_SECCOMP, [6]uintptr{unix.SECCOMP_GET_ACTION_AVAIL}},
	{"landlock_create_ruleset", unix.SYS_LANDLOCK_CREATE_RULESET, [6]uintptr{0, 0, 1}},
	{"landlock_restrict_self", unix.SYS_LANDLOCK_RESTRICT_SELF, [6]uintptr{invalid}},
	{"lsm_set_self_attr", unix.SYS_LSM_SET_SELF_ATTR, [6]uintptr{invalid}},
	{"fanotify_init", unix.SYS_FANOTIFY_INIT, [6]uintptr{invalid}},
	{"fanotify_mark", unix.SYS_FANOTIFY_MARK, [6]uintptr{invalid}},
	{"inotify_init1", unix.SYS_INOTIFY_INIT1, [6]uintptr{invalid}},
	{"name_to_handle_at", unix.SYS_NAME_TO_HANDLE_AT, [6]uintptr{invalid, invalid, invalid}},
	{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, [6]uintptr{invalid, invalid, invalid}},
	{"vmsplice", unix.SYS_VMSPLICE, [6]uintptr{invalid}},
	{"tee", unix.SYS_TEE, [6]uintptr{invalid, invalid}},
	{"futex(FUTEX_LOCK_PI)", unix.SYS_FUTEX, [6]uintptr{0, 6 | 128}},
	{"futex(FUTEX_CMP_REQUEUE_PI)", unix.SYS_FUTEX, [6]uintptr{0, 12 | 128}},
	{"futex between processes", unix.SYS_FUTEX, [6]uintptr{0, 1, 0}},
	{"set_robust_list", unix.SYS_SET_ROBUST_LIST, [6]uintptr{0, 0}},
	{"signalfd4", unix.SYS_SIGNALFD4, [6]uintptr{invalid, invalid}},
	{"timerfd_create", unix.SYS_TIMERFD_CREATE, [6]uintptr{invalid}},
	{"timer_create", unix.SYS_TIMER_CREATE, [6]uintptr{invalid}},
	{"setitimer", unix.SYS_SETITIMER, [6]uintptr{invalid}},

	// Memory.
	{"memfd_create", unix.SYS_MEMFD_CREATE, [6]uintptr{invalid, invalid}},
	{"memfd_secret", unix.SYS_MEMFD_SECRET, [6]uintptr{invalid}},
	{"mmap of a file", unix.SYS_MMAP, [6]uintptr{0, 4096, unix.PROT_READ, unix.MAP_PRIVATE, invalid}},
	{"mmap, shared", unix.SYS_MMAP, [6]uintptr{0, 4096, unix.PROT_READ, unix.MAP_SHARED | unix.MAP_ANON, invalid}},
	{"mremap", unix.SYS_MREMAP, [6]uintptr{invalid, invalid, invalid, 0}},
	{"remap_file_pages", unix.SYS_REMAP_FILE_PAGES, [6]uintptr{invalid, invalid, invalid}},
	{"mlock", unix.SYS_MLOCK, [6]uintptr{0, 0}},
	{"brk", unix.SYS_BRK, [6]uintptr{0}},
	{"madvise(MADV_HWPOISON)", unix.SYS_MADVISE, [6]uintptr{0, 0, unix.MADV_HWPOISON}},
	{"madvise(MADV_MERGEABLE)", unix.SYS_MADVISE, [6]uintptr{0, 0, unix.MADV_MERGEABLE}},
	{"shmget", unix.SYS_SHMGET, [6]uintptr{invalid, 0, 0}},
	{"shmat", unix.SYS_SHMAT, [6]uintptr{invalid, 0, 0}},
	{"msgget", unix.SYS_MSGGET, [6]uintptr{invalid, 0}},
	{"semget", unix.SYS_SEMGET, [6]uintptr{invalid, 0, 0}},
	{"mq_open", unix.SYS_MQ_OPEN, [6]uintptr{invalid}},
	{"move_pages", unix.SYS_MOVE_PAGES, [6]uintptr{1, 0, 0, 0, 0, 0}},
	{"mbind", unix.SYS_MBIND, [6]uintptr{0, 0, invalid}},

	// Files and descriptors.
	{"ioctl(TIOCSTI)", unix.SYS_IOCTL, [6]uintptr{invalid, unix.TIOCSTI}},
	{"ioctl(FIONREAD)", unix.SYS_IOCTL, [6]uintptr{invalid, unix.TIOCINQ}},
	{"fcntl(F_SETOWN)", unix.SYS_FCNTL, [6]uintptr{invalid, unix.F_SETOWN, 1}},
	{"fcntl(F_SETOWN_EX)", unix.SYS_FCNTL, [6]uintptr{invalid, unix.F_SETOWN_EX, 0}},
	{"fcntl(F_SETSIG)", unix.SYS_FCNTL, [6]uintptr{invalid, unix.F_SETSIG, 9}},
	{"fcntl(F_SETLEASE)", unix.SYS_FCNTL, [6]uintptr{invalid, unix.F_SETLEASE, unix.F_RDLCK}},
	{"fcntl(F_NOTIFY)", unix.SYS_FCNTL, [6]uintptr{invalid, unix.F_NOTIFY, 0}},
	{"fcntl(F_SETLK)", unix.SYS_FCNTL, [6]uintptr{invalid, unix.F_SETLK, 0}},
	{"fcntl(F_ADD_SEALS)", unix.SYS_FCNTL, [6]uintptr{invalid, unix.F_ADD_SEALS, 0}},
	{"fcntl(F_SETPIPE_SZ)", unix.SYS_FCNTL, [6]uintptr{invalid, unix.F_SETPIPE_SZ, 0}},
	{"fcntl(F_SETFL, O_ASYNC)", unix.SYS_FCNTL, [6]uintptr{invalid, unix.F_SETFL, unix.O_ASYNC}},
	{"fcntl with more than 32 bits", unix.SYS_FCNTL, [6]uintptr{invalid, highBit | unix.F_GETFL}},
	{"dup", unix.SYS_DUP, [6]uintptr{invalid}},
	{"dup3", unix.SYS_DUP3, [6]uintptr{invalid, invalid, 0}},
	{"unlinkat", unix.SYS_UNLINKAT, [6]uintptr{invalid, invalid}},
	{"renameat2", unix.SYS_RENAMEAT2, [6]uintptr{invalid, invalid, invalid, invalid}},
	{"linkat", unix.SYS_LINKAT, [6]uintptr{invalid, invalid, invalid, invalid}},
	{"symlinkat", unix.SYS_SYMLINKAT, [6]uintptr{invalid, invalid, invalid}},
	{"mkdirat", unix.SYS_MKDIRAT, [6]uintptr{invalid, invalid}},
	{"mknodat", unix.SYS_MKNODAT, [6]uintptr{invalid, invalid}},
	{"fchmod", unix.SYS_FCHMOD, [6]uintptr{invalid}},
	{"fchmodat", unix.SYS_FCHMODAT, [6]uintptr{invalid, invalid}},
	{"fchown", unix.SYS_FCHOWN, [6]uintptr{invalid}},
	{"fchownat", unix.SYS_FCHOWNAT, [6]uintptr{invalid, invalid}},
	{"truncate", unix.SYS_TRUNCATE, [6]uintptr{invalid}},
	{"ftruncate", unix.SYS_FTRUNCATE, [6]uintptr{invalid}},
	{"fallocate", unix.SYS_FALLOCATE, [6]uintptr{invalid}},
	{"pwrite64", unix.SYS_PWRITE64, [6]uintptr{invalid}},
	{"getdents64", unix.SYS_GETDENTS64, [6]uintptr{invalid}},
	{"getcwd", unix.SYS_GETCWD, [6]uintptr{invalid, 0}},
	{"chdir", unix.SYS_CHDIR, [6]uintptr{invalid}},
	{"fchdir", unix.SYS_FCHDIR, [6]uintptr{invalid}},
	{"statfs", unix.SYS_STATFS, [6]uintptr{invalid}},
	{"utimensat", unix.SYS_UTIMENSAT, [6]uintptr{invalid, invalid}},
	{"setxattr", unix.SYS_SETXATTR, [6]uintptr{invalid, invalid}},
	{"flock", unix.SYS_FLOCK, [6]uintptr{invalid, invalid}},
	{"umask", unix.SYS_UMASK, [6]uintptr{0o777}},

	// Connections.
	{"bind", unix.SYS_BIND, [6]uintptr{invalid}},
	{"listen", unix.SYS_LISTEN, [6]uintptr{invalid}},
	{"accept4", unix.SYS_ACCEPT4, [6]uintptr{invalid}},
	{"sendto", unix.SYS_SENDTO, [6]uintptr{invalid}},
	{"sendmmsg", unix.SYS_SENDMMSG, [6]uintptr{invalid}},
	{"recvmmsg", unix.SYS_RECVMMSG, [6]uintptr{invalid}},
	{"sendmsg", unix.SYS_SENDMSG, [6]uintptr{invalid}},
	{"recvmsg from a client", unix.SYS_RECVMSG, [6]uintptr{invalid}},
	{"close of the channel to the parent", unix.SYS_CLOSE, [6]uintptr{Channel}},
	{"close of it with more than 32 bits", unix.SYS_CLOSE, [6]uintptr{highBit | Channel}},
	{"setsockopt(SO_ATTACH_FILTER)", unix.SYS_SETSOCKOPT, [6]uintptr{invalid, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER}},
	{"setsockopt(SO_ATTACH_BPF)", unix.SYS_SETSOCKOPT, [6]uintptr{invalid, unix.SOL_SOCKET, unix.SO_ATTACH_BPF}},
	{"setsockopt(SO_BINDTODEVICE)", unix.SYS_SETSOCKOPT, [6]uintptr{invalid, unix.SOL_SOCKET, unix.SO_BINDTODEVICE}},
	{"setsockopt(SO_ZEROCOPY)", unix.SYS_SETSOCKOPT, [6]uintptr{invalid, unix.SOL_SOCKET, unix.SO_ZEROCOPY}},
	{"setsockopt(TCP_ULP)", unix.SYS_SETSOCKOPT, [6]uintptr{invalid, unix.IPPROTO_TCP, unix.TCP_ULP}},
	{"setsockopt(TCP_REPAIR)", unix.SYS_SETSOCKOPT, [6]uintptr{invalid, unix.IPPROTO_TCP, unix.TCP_REPAIR}},
	{"setsockopt(TCP_FASTOPEN)", unix.SYS_SETSOCKOPT, [6]uintptr{invalid, unix.IPPROTO_TCP, unix.TCP_FASTOPEN}},
	{"setsockopt(IPPROTO_IP)", unix.SYS_SETSOCKOPT, [6]uintptr{invalid, unix.IPPROTO_IP, unix.IP_OPTIONS}},
	{"setsockopt(SOL_ALG)", unix.SYS_SETSOCKOPT, [6]uintptr{invalid, unix.SOL_ALG, 1}},
	{"getsockopt(SO_GET_FILTER)", unix.SYS_GETSOCKOPT, [6]uintptr{invalid, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER}},
	{"getsockopt(SO_PEERPIDFD)", unix.SYS_GETSOCKOPT, [6]uintptr{invalid, unix.SOL_SOCKET, unix.SO_PEERPIDFD}},
	{"getsockopt(TCP_INFO)", unix.SYS_GETSOCKOPT, [6]uintptr{invalid, unix.IPPROTO_TCP, unix.TCP_INFO}},

	// The machine, and the process's own attributes.
	{"prctl(PR_SET_DUMPABLE)", unix.SYS_PRCTL, [6]uintptr{unix.PR_SET_DUMPABLE, 0}},
	{"prctl(PR_SET_NAME)", unix.SYS_PRCTL, [6]uintptr{unix.PR_SET_NAME, invalid}},
	{"prctl(PR_SET_PTRACER)", unix.SYS_PRCTL, [6]uintptr{unix.PR_SET_PTRACER, 0}},
	{"prctl(PR_CAP_AMBIENT)", unix.SYS_PRCTL, [6]uintptr{unix.PR_CAP_AMBIENT, invalid}},
	{"capset", unix.SYS_CAPSET, [6]uintptr{invalid, invalid}},
	{"personality", unix.SYS_PERSONALITY, [6]uintptr{0xffffffff}},
	{"reboot", unix.SYS_REBOOT, [6]uintptr{invalid, invalid}},
	{"init_module", unix.SYS_INIT_MODULE, [6]uintptr{invalid, 0, invalid}},
	{"finit_module", unix.SYS_FINIT_MODULE, [6]uintptr{invalid}},
	{"delete_module", unix.SYS_DELETE_MODULE, [6]uintptr{invalid}},
	{"kexec_load", unix.SYS_KEXEC_LOAD, [6]uintptr{invalid, invalid, invalid, invalid}},
	{"swapon", unix.SYS_SWAPON, [6]uintptr{invalid}},
	{"swapoff", unix.SYS_SWAPOFF, [6]uintptr{invalid}},
	{"syslog", unix.SYS_SYSLOG, [6]uintptr{invalid}},
	{"acct", unix.SYS_ACCT, [6]uintptr{invalid}},
	{"quotactl", unix.SYS_QUOTACTL, [6]uintptr{invalid}},
	{"settimeofday", unix.SYS_SETTIMEOFDAY, [6]uintptr{invalid}},
	{"clock_settime", unix.SYS_CLOCK_SETTIME, [6]uintptr{invalid, invalid}},
	{"adjtimex", unix.SYS_ADJTIMEX, [6]uintptr{invalid}},
	{"sysinfo", unix.SYS_SYSINFO, [6]uintptr{invalid}},
	{"a system call number of the future", 1000, [6]uintptr{}},
}

// parentPID is the pid of the parent process. It is read at the start, while
// getppid(2) is still allowed.
var parentPID = uintptr(unix.Getppid())

// DeathTests returns the names that RunDeathTest accepts.
func DeathTests() []string {
	var names []string
	for _, a := range slices.Concat(deathTests, archDeathTests) {
		names = append(names, a.name)
	}
	return names
}

// RunDeathTest makes the system call of the death test with the given name. In
// the sandbox this call kills the process with SIGSYS. If the process survives,
// RunDeathTest returns an error with the kernel's result.
func RunDeathTest(name string) error {
	for _, a := range slices.Concat(deathTests, archDeathTests) {
		if a.name == name {
			return fmt.Errorf("%s returned (%w) instead of killing the process", a.name, a.makeCall())
		}
	}
	return fmt.Errorf("no death test is named %q", name)
}

func (a deathTest) makeCall() error {
	for i, v := range a.args {
		switch v {
		case argParentPID:
			a.args[i] = parentPID
		case argOwnPIDHigh:
			a.args[i] = highBit | uintptr(unix.Getpid())
		case argOtherPID:
			a.args[i] = uintptr(unix.Getpid()) + 1
		}
	}
	r, _, e := unix.RawSyscall6(a.number, a.args[0], a.args[1], a.args[2], a.args[3], a.args[4], a.args[5])
	if e != 0 {
		return e
	}
	if r == 0 && slices.Contains(forkCalls, a.number) { // this is the new process, which must exit here
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	return fmt.Errorf("%#x", r)
}
