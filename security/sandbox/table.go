package sandbox

import (
	"slices"

	"golang.org/x/sys/unix"
)

func sys(name string, number uintptr) call { return call{name, number} }

// goThread contains the flags in cloneFlags (runtime/os_linux.go) that all
// architectures share.
const goThread = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_SYSVSEM | unix.CLONE_THREAD

// The two futex operations that runtime/os_linux.go uses. They work only within
// one process.
const (
	futexWait = 0 | 128
	futexWake = 1 | 128
)

// fileLookups is the reason in the rows for calls that examine a file. Our
// programs do not need these calls, but libraries make them. So the calls
// return an error and do not kill the process.
const fileLookups = "Go's libraries look for files (resolver, time zones) and work without them"

// table returns the rows for a process with the options o and the given pid.
// The rows list every call that is allowed or that returns an error.
func table(o Options, pid int) []row {
	t := runtimeRows(pid)
	t = append(t, memoryRows...)
	switch o.Kind {
	case Auditor:
		t = append(append(t, appendRows()...), keeperRows...)
	case Keeper:
		if o.Register {
			t = append(append(append(t, appendRows()...), keeperRows...), registerRows...)
		} else {
			t = append(append(t, descriptorRows...), keeperRows...)
		}
	case Dispatcher:
		t = append(append(t, dispatcherFDRows()...), dispatcherRows...)
	case Exporter:
		t = append(append(append(t, descriptorRows...), connectionRows...), exporterRows...)
	case Output:
		t = append(append(append(t, descriptorRows...), keeperRows...), outputRows...)
	case Credential:
		t = append(append(append(t, descriptorRows...), keeperRows...), credentialRows...)
	default:
		t = append(append(append(t, descriptorRows...), connectionRows...), workerRows...)
	}
	if o.Claims {
		t = append(t, claimRows...)
	}
	if dialsUnix(o) {
		t = append(t, dialRows...)
	}
	t = append(t, errorRows(o)...)
	return append(t, archRows(o)...)
}

// runtimeRows returns the rows for threads, signals and clocks, which Go's
// runtime always needs.
func runtimeRows(pid int) []row {
	own := is(0, uint64(pid)).named("its own pid")
	return []row{
		{sys("futex", unix.SYS_FUTEX), allow, []test{is(1, futexWait, futexWake).named("WAIT_PRIVATE|WAKE_PRIVATE")}, "threads sleep and wake each other; priority inheritance and robust lists, which had kernel bugs, kill"},
		{sys("nanosleep", unix.SYS_NANOSLEEP), allow, nil, "the runtime's usleep"},
		{sys("clock_nanosleep", unix.SYS_CLOCK_NANOSLEEP), allow, nil, "the same, when a nanosleep is restarted"},
		{sys("restart_syscall", unix.SYS_RESTART_SYSCALL), allow, nil, "the kernel continues a sleep that was stopped (SIGSTOP, SIGCONT)"},
		{sys("sched_yield", unix.SYS_SCHED_YIELD), allow, nil, "the runtime's osyield"},
		{sys("sched_getaffinity", unix.SYS_SCHED_GETAFFINITY), allow, nil, "the runtime counts its processors"},
		{sys("clock_gettime", unix.SYS_CLOCK_GETTIME), allow, nil, "the time, where the vDSO has none"},
		{sys("gettimeofday", unix.SYS_GETTIMEOFDAY), allow, nil, "the time, where the vDSO has none"},
		{sys("getrandom", unix.SYS_GETRANDOM), allow, nil, "crypto/rand, where the vDSO has no getrandom"},
		{sys("getpid", unix.SYS_GETPID), allow, nil, "the runtime, for tgkill"},
		{sys("gettid", unix.SYS_GETTID), allow, nil, "the runtime, for tgkill"},
		{sys("getuid", unix.SYS_GETUID), allow, nil, "its own uid, for munged and accounting"},
		{sys("geteuid", unix.SYS_GETEUID), allow, nil, "the same"},
		{sys("getgid", unix.SYS_GETGID), allow, nil, "the same"},
		{sys("getegid", unix.SYS_GETEGID), allow, nil, "the same"},
		{sys("clone", unix.SYS_CLONE), allow, []test{is(0, threadFlags).named("a thread of Go's runtime")}, "threads, with exactly the runtime's flags; any other clone could be a process"},
		{sys("tgkill", unix.SYS_TGKILL), allow, []test{own}, "the runtime preempts its own threads with SIGURG"},
		{sys("rt_sigreturn", unix.SYS_RT_SIGRETURN), allow, nil, "return from a signal"},
		{sys("rt_sigprocmask", unix.SYS_RT_SIGPROCMASK), allow, nil, "at the start of a thread"},
		{sys("rt_sigaction", unix.SYS_RT_SIGACTION), allow, nil, "a panic restores the signal that it ends with"},
		{sys("sigaltstack", unix.SYS_SIGALTSTACK), allow, nil, "each thread has a stack for signals"},
		{sys("prctl", unix.SYS_PRCTL), allow, []test{is(0, unix.PR_SET_VMA).named("PR_SET_VMA"), is(1, unix.PR_SET_VMA_ANON_NAME).named("PR_SET_VMA_ANON_NAME")}, "the runtime names its mappings"},
		{sys("exit", unix.SYS_EXIT), allow, nil, "a thread ends"},
		{sys("exit_group", unix.SYS_EXIT_GROUP), allow, nil, "the process ends"},
	}
}

// memoryRows allows anonymous memory that is never executable, so that a
// process can't execute data that it has written.
var memoryRows = []row{
	{sys("mmap", unix.SYS_MMAP), allow, []test{
		without(2, unix.PROT_EXEC).named("not executable"),
		is(3, unix.MAP_PRIVATE|unix.MAP_ANON, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED,
			unix.MAP_DROPPABLE|unix.MAP_ANON).named("anonymous: private, fixed, droppable"),
	}, "heap, stacks, pieces of answers; droppable is the state of the vDSO's getrandom"},
	{sys("mmap", unix.SYS_MMAP), eperm, []test{is(2, execProts...).named("executable")}, "probe: no executable memory"},
	{sys("mprotect", unix.SYS_MPROTECT), allow, []test{without(2, unix.PROT_EXEC).named("not executable")}, "guard pages"},
	{sys("mprotect", unix.SYS_MPROTECT), eperm, nil, "probe: no executable memory"},
	{sys("pkey_mprotect", unix.SYS_PKEY_MPROTECT), eperm, nil, "probe: no executable memory"},
	{sys("munmap", unix.SYS_MUNMAP), allow, nil, "memory is released"},
	{sys("madvise", unix.SYS_MADVISE), allow, []test{
		is(2, unix.MADV_DONTNEED, unix.MADV_FREE, unix.MADV_HUGEPAGE, unix.MADV_NOHUGEPAGE, unix.MADV_COLLAPSE).named("DONTNEED|FREE|HUGEPAGE|NOHUGEPAGE|COLLAPSE"),
	}, "the scavenger releases memory"},
}

// execProts lists every protection that includes PROT_EXEC.
var execProts = []uint64{
	unix.PROT_EXEC, unix.PROT_EXEC | unix.PROT_READ, unix.PROT_EXEC | unix.PROT_WRITE, unix.PROT_EXEC | unix.PROT_READ | unix.PROT_WRITE,
}

// descriptorRows allows the operations of a process on descriptors that it has
// or receives.
var descriptorRows = []row{
	{sys("read", unix.SYS_READ), allow, nil, "connections, received files, the runtime's eventfd"},
	{sys("write", unix.SYS_WRITE), allow, nil, "connections, the log, the runtime's eventfd"},
	{sys("writev", unix.SYS_WRITEV), allow, nil, "net.Buffers"},
	{sys("pread64", unix.SYS_PREAD64), allow, nil, "received files: keys, certificates"},
	{sys("lseek", unix.SYS_LSEEK), allow, nil, "the same: io.Copy asks for the offset"},
	{sys("fstat", unix.SYS_FSTAT), allow, nil, "os.NewFile and ReadAll ask for the type of a descriptor"},
	{sys("close", unix.SYS_CLOSE), kill, []test{isInt(0, Channel).named("the channel to the parent")}, "its number must not be reused: descriptors could then be received from a client"},
	{sys("close", unix.SYS_CLOSE), allow, nil, "any other descriptor"},
	{sys("fcntl", unix.SYS_FCNTL), allow, []test{is(1, unix.F_DUPFD_CLOEXEC, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL).named("DUPFD_CLOEXEC|GETFD|SETFD|GETFL")}, "net.FileConn; a descriptor's mode"},
	{sys("fcntl", unix.SYS_FCNTL), allow, []test{is(1, unix.F_SETFL).named("SETFL"), without(2, unix.O_ASYNC).named("without O_ASYNC")}, "non-blocking; no signals, and no owner to get them (SETOWN, SETSIG, SETLEASE, NOTIFY kill)"},
	{sys("getsockopt", unix.SYS_GETSOCKOPT), allow, []test{
		is(1, unix.SOL_SOCKET).named("SOL_SOCKET"),
		is(2, unix.SO_TYPE, unix.SO_ERROR, unix.SO_PEERCRED, unix.SO_PASSRIGHTS).named("TYPE|ERROR|PEERCRED|PASSRIGHTS"),
	}, "ipc.Open and net.FileConn ask for the type; the peer of a UNIX socket; whether it accepts descriptors"},
	{sys("epoll_ctl", unix.SYS_EPOLL_CTL), allow, nil, "the runtime's poller"},
	{sys("epoll_pwait", unix.SYS_EPOLL_PWAIT), allow, nil, "the runtime's poller"},
	{sys("epoll_create1", unix.SYS_EPOLL_CREATE1), allow, nil, "the runtime's poller, at its first use"},
	{sys("eventfd2", unix.SYS_EVENTFD2), allow, nil, "the runtime's poller, at its first use"},
}

// appendRows returns the rows for a process that has a log open for appending.
// It adds fdatasync to descriptorRows. It omits the calls that seek, that read
// at a position, or that could end append mode (F_SETFL).
func appendRows() []row {
	list := slices.DeleteFunc(slices.Clone(descriptorRows), func(r row) bool {
		return r.call.name == "lseek" || r.call.name == "pread64" || r.call.name == "fcntl" && r.tests[0].name == "SETFL"
	})
	return append(list, row{sys("fdatasync", unix.SYS_FDATASYNC), allow, nil, "a line counts as written when it is on disk (SCHEDRESTD_AUDIT_SYNC)"})
}

// claimRows allows the auditor's operations on the file of Idempotency-Keys.
// These calls can neither read nor overwrite the audit log, because the log is
// open only for appending.
var claimRows = []row{
	{sys("pread64", unix.SYS_PREAD64), allow, nil, "the file of Idempotency-Keys; a log is not open for reading"},
	{sys("pwrite64", unix.SYS_PWRITE64), allow, nil, "the same; to a log it appends (O_APPEND)"},
	{sys("fcntl", unix.SYS_FCNTL), allow, []test{is(1, unix.F_SETLK, unix.F_SETLKW).named("SETLK|SETLKW")}, "other gateways and the next auditor use the same file"},
}

// registerRows allows the keeper to read its files, and to append to the register of
// gateway tokens.
var registerRows = []row{
	{sys("pread64", unix.SYS_PREAD64), allow, nil, "received files: keys, certificates, the register"},
	{sys("fcntl", unix.SYS_FCNTL), allow, []test{is(1, unix.F_OFD_SETLK).named("OFD_SETLK")}, "other gateways and schedctl append to the same register"},
	{sys("fallocate", unix.SYS_FALLOCATE), allow, []test{is(1, unix.FALLOC_FL_KEEP_SIZE).named("KEEP_SIZE")}, "a full disk must not cut a line off; modes that change the content kill"},
}

// connectionRows allows the operations of a worker or the exporter on its
// connections. No call can send a descriptor, because a descriptor sent over a
// UNIX connection would leave the sandbox.
var connectionRows = []row{
	{sys("recvmsg", unix.SYS_RECVMSG), allow, []test{is(0, Channel).named("the channel to the parent")}, "descriptors come only from the parent"},
	{sys("recvfrom", unix.SYS_RECVFROM), allow, nil, "whether the peer is still there (MSG_PEEK)"},
	{sys("getsockname", unix.SYS_GETSOCKNAME), allow, nil, "net.FileConn"},
	{sys("getpeername", unix.SYS_GETPEERNAME), allow, nil, "net.FileConn"},
	{sys("ppoll", unix.SYS_PPOLL), allow, nil, "waits for standard input and output of an inetd run; whether a client is gone"},
	{sys("setsockopt", unix.SYS_SETSOCKOPT), allow, []test{
		is(1, unix.SOL_SOCKET).named("SOL_SOCKET"), is(2, unix.SO_KEEPALIVE).named("KEEPALIVE"),
	}, "net; LINGER (which makes closing the shared socket sleep), ATTACH_FILTER and all others kill"},
	{sys("setsockopt", unix.SYS_SETSOCKOPT), allow, []test{
		is(1, unix.IPPROTO_TCP).named("IPPROTO_TCP"),
		is(2, unix.TCP_NODELAY, unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL, unix.TCP_KEEPCNT).named("NODELAY|KEEPIDLE|KEEPINTVL|KEEPCNT"),
	}, "net"},
	{sys("splice", unix.SYS_SPLICE), enosys, nil, "io.Copy between connections tries it first"},
	{sys("sendfile", unix.SYS_SENDFILE), enosys, nil, "io.Copy of an open file tries it first"},
	{sys("copy_file_range", unix.SYS_COPY_FILE_RANGE), enosys, nil, "io.Copy between files tries it first"},
	{sys("pipe2", unix.SYS_PIPE2), enosys, nil, "io.Copy between connections, for splice"},
}

// keeperRows allows the keeper to receive messages. The keeper has only
// channels and open files.
var keeperRows = []row{
	{sys("recvmsg", unix.SYS_RECVMSG), allow, nil, "the protocol's channels; a worker that sends descriptors is detected"},
}

// outputRows allow a process to open the files that its user may read. A filter
// can't see paths.
var outputRows = []row{
	{sys("openat", unix.SYS_OPENAT), allow, []test{
		is(2, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC).named("O_PATH|O_RDONLY"),
	}, "directories, links and files of output; opening for writing kills"},
	{sys("readlinkat", unix.SYS_READLINKAT), allow, nil, "links in the path of a file"},
	{sys("fstatfs", unix.SYS_FSTATFS), allow, nil, "whether the kernel makes up a file"},
}

// credentialRows allow a process to use connections that it has made (dialRows).
var credentialRows = []row{
	{sys("getsockname", unix.SYS_GETSOCKNAME), allow, nil, "net.FileConn"},
	{sys("getpeername", unix.SYS_GETPEERNAME), allow, nil, "net.FileConn"},
}

// workerRows allows operations on connections that only workers need.
var workerRows = []row{
	{sys("shutdown", unix.SYS_SHUTDOWN), allow, nil, "CloseWrite, before a refused connection is closed"},
}

// exporterRows allows the exporter to accept connections on the sockets for
// metrics. The parent has opened these sockets and keeps them. The exporter
// must not be able to shut them down, because the next exporter uses the same
// sockets.
var exporterRows = []row{
	{sys("shutdown", unix.SYS_SHUTDOWN), allow, []test{is(1, unix.SHUT_WR).named("SHUT_WR")}, "CloseWrite, before a refused connection is closed; it does not end listening"},
	{sys("accept4", unix.SYS_ACCEPT4), allow, nil, "scrapes of the metrics; the process can't listen by itself"},
}

// dialRows allow a worker to connect to daemons that need to see the worker's
// own uid. A filter can't see addresses. So the mount namespace must limit the
// UNIX sockets that the worker can reach, and Landlock (version 4) must deny
// connect(2) on TCP sockets. If Landlock allowed connect(2), a worker could
// disconnect (AF_UNSPEC) a TCP socket that it was given, and connect the socket
// to another address. The new connection would be made in the network namespace
// of the process that opened the socket, not in the worker's. Landlock does not
// cover Multipath TCP, so the parent's listeners do not use Multipath TCP.
var dialRows = []row{
	{sys("socket", unix.SYS_SOCKET), allow, []test{
		is(0, unix.AF_UNIX).named("AF_UNIX"),
		is(1, unix.SOCK_STREAM, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK).named("SOCK_STREAM"),
		is(2, 0),
	}, "munged and the controller identify the worker by its own uid"},
	{sys("connect", unix.SYS_CONNECT), allow, nil, "the same"},
	{sys("setsockopt", unix.SYS_SETSOCKOPT), allow, []test{is(1, unix.SOL_SOCKET).named("SOL_SOCKET"), is(2, unix.SO_PASSRIGHTS).named("PASSRIGHTS")}, "refuses descriptors"},
	{sys("newfstatat", unix.SYS_NEWFSTATAT), allow, nil, "the owner of the directory of munged's socket"},
}

// errorRows returns the rows of calls that return an error instead of killing
// the process.
func errorRows(o Options) []row {
	var t []row
	if !opensFiles(o) {
		t = append(t, row{sys("openat", unix.SYS_OPENAT), eperm, nil, "probe: no file"}, row{sys("readlinkat", unix.SYS_READLINKAT), eperm, nil, fileLookups})
	}
	t = append(t, []row{
		{sys("openat2", unix.SYS_OPENAT2), eperm, nil, "probe: no file"},
		{sys("execve", unix.SYS_EXECVE), eperm, nil, "probe: no program"},
		{sys("execveat", unix.SYS_EXECVEAT), eperm, nil, "probe: no program"},
		{sys("clone3", unix.SYS_CLONE3), enosys, nil, "its flags are in memory, which a filter can't read; after ENOSYS the runtime uses clone"},
		{sys("ptrace", unix.SYS_PTRACE), eperm, nil, "probe: no debugging"},
		{sys("socket", unix.SYS_SOCKET), eperm, nil, "probe: only received sockets"},
		{sys("socketpair", unix.SYS_SOCKETPAIR), eperm, nil, "probe: the same"},
		{sys("setuid", unix.SYS_SETUID), eperm, nil, "probe: no other user"},
		{sys("setreuid", unix.SYS_SETREUID), eperm, nil, "probe: the same"},
		{sys("setresuid", unix.SYS_SETRESUID), eperm, nil, "probe: the same"},
		{sys("setfsuid", unix.SYS_SETFSUID), eperm, nil, "probe: the same"},
		{sys("setgid", unix.SYS_SETGID), eperm, nil, "probe: no other group"},
		{sys("setregid", unix.SYS_SETREGID), eperm, nil, "probe: the same"},
		{sys("setresgid", unix.SYS_SETRESGID), eperm, nil, "probe: the same"},
		{sys("setfsgid", unix.SYS_SETFSGID), eperm, nil, "probe: the same"},
		{sys("setgroups", unix.SYS_SETGROUPS), eperm, nil, "probe: the same"},
		{sys("statx", unix.SYS_STATX), eperm, nil, fileLookups},
		{sys("faccessat", unix.SYS_FACCESSAT), eperm, nil, fileLookups},
		{sys("faccessat2", unix.SYS_FACCESSAT2), eperm, nil, fileLookups},
		{sys("uname", unix.SYS_UNAME), eperm, nil, "package net asks for the kernel version, and assumes an old one on an error"},
	}...)
	if !mayConnect(o) {
		t = append(t,
			row{sys("connect", unix.SYS_CONNECT), eperm, nil, "probe: only received connections"},
			row{sys("newfstatat", unix.SYS_NEWFSTATAT), eperm, nil, fileLookups},
		)
	}
	return t
}
