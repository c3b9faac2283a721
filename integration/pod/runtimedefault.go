package pod

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// blocked lists the system calls that a container without capabilities can't
// make under the seccomp profile RuntimeDefault, on Linux 4.8 and later. They
// are those that contrib/seccomp/seccomp_default.go of containerd 2.4 does not
// list. The numbers of some of them differ between architectures, and some
// exist only on amd64.
var blocked = append([]uintptr{
	unix.SYS_ACCT, unix.SYS_ADD_KEY, unix.SYS_BPF, unix.SYS_CHROOT, unix.SYS_CLOCK_SETTIME, unix.SYS_DELETE_MODULE,
	unix.SYS_FANOTIFY_INIT, unix.SYS_FINIT_MODULE, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSOPEN, unix.SYS_FSPICK,
	unix.SYS_GET_MEMPOLICY, unix.SYS_INIT_MODULE, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_IO_URING_SETUP,
	unix.SYS_KCMP, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_KEXEC_LOAD, unix.SYS_KEYCTL, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_MBIND,
	unix.SYS_MIGRATE_PAGES, unix.SYS_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_MOVE_MOUNT, unix.SYS_MOVE_PAGES, unix.SYS_NFSSERVCTL,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_OPEN_TREE, unix.SYS_PERF_EVENT_OPEN, unix.SYS_PIDFD_GETFD, unix.SYS_PIVOT_ROOT,
	unix.SYS_PROCESS_MADVISE, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_REBOOT, unix.SYS_REQUEST_KEY, unix.SYS_SETDOMAINNAME,
	unix.SYS_SETHOSTNAME, unix.SYS_SETNS, unix.SYS_SETTIMEOFDAY, unix.SYS_SET_MEMPOLICY, unix.SYS_SET_MEMPOLICY_HOME_NODE,
	unix.SYS_SWAPOFF, unix.SYS_SWAPON, unix.SYS_SYSLOG, unix.SYS_UMOUNT2, unix.SYS_UNSHARE, unix.SYS_USERFAULTFD, unix.SYS_VHANGUP,
}, blockedHere...)

// lastKnown is the last system call that the profile knows. The runtime answers
// newer ones, and clone3, with ENOSYS.
const lastKnown = 466 // removexattrat

// newNamespaces are the flags with which clone(2) makes namespaces. The profile
// forbids them.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// installRuntimeDefault forbids these calls to this thread. Calls of another
// architecture are not tested, so the filter does not look at it.
func installRuntimeDefault() error {
	const number, argument = 0, 16 // offsets in struct seccomp_data
	fail := func(e unix.Errno) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(e)}
	}
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	// unless skips the next instructions if the value has not passed the test.
	unless := func(test uint16, k uint32, skipped uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | test, K: k, Jf: skipped}
	}
	program := []unix.SockFilter{load(number)}
	for _, call := range blocked {
		program = append(program, unless(unix.BPF_JEQ, uint32(call), 1), fail(unix.EPERM))
	}
	program = append(program,
		unless(unix.BPF_JEQ, unix.SYS_CLONE3, 1), fail(unix.ENOSYS),
		unless(unix.BPF_JGT, lastKnown, 1), fail(unix.ENOSYS),
		unless(unix.BPF_JEQ, unix.SYS_CLONE, 3), load(argument), unless(unix.BPF_JSET, newNamespaces, 1), fail(unix.EPERM),
		load(number), unless(unix.BPF_JEQ, unix.SYS_SOCKET, 5), load(argument),
		unless(unix.BPF_JEQ, unix.AF_VSOCK, 1), fail(unix.EPERM), unless(unix.BPF_JEQ, unix.AF_ALG, 1), fail(unix.EPERM),
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	list := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&list)))
	if e != 0 {
		return e
	}
	return nil
}
