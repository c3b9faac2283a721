package privsep

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// A captured worker is a real worker in the complete sandbox, whose handler
// belongs to an attacker. Each request names one attack, and the worker carries
// it out. A worker that is killed for its attack does not answer.

// attack is one attack of a captured worker.
type attack struct {
	name string
	do   func() string
}

// attacks lists the attacks, grouped by their aim. The system call filter stops
// the attacks in all groups except the last. Most attacks in the last group are
// messages, and the dispatcher checks each message against the protocol table.
var attacks = []attack{
	// Files.
	call("read /etc/shadow", unix.SYS_OPENAT, atCWD, text("/etc/shadow"), unix.O_RDONLY),
	call("read /proc/1/environ", unix.SYS_OPENAT, atCWD, text("/proc/1/environ"), unix.O_RDONLY),
	call("write its own memory through /proc", unix.SYS_OPENAT, atCWD, text("/proc/self/mem"), unix.O_RDWR),
	call("make a file in /tmp", unix.SYS_OPENAT, atCWD, text("/tmp/captured"), unix.O_CREAT|unix.O_WRONLY, 0o600),
	call("leave its root directory through a descriptor", unix.SYS_OPENAT, ipc.WorkerFD, text(".."), unix.O_RDONLY),
	call("open with openat2", unix.SYS_OPENAT2, atCWD, text("/"), 0, 24),
	call("open by handle", unix.SYS_OPEN_BY_HANDLE_AT, atCWD, text("/"), 0),
	call("list a directory", unix.SYS_GETDENTS64, 0, 0, 0),
	call("make a directory", unix.SYS_MKDIRAT, atCWD, text("/tmp/captured"), 0o700),
	call("make a link", unix.SYS_SYMLINKAT, text("/etc"), atCWD, text("/tmp/captured")),
	call("remove a file", unix.SYS_UNLINKAT, atCWD, text("/tmp/captured"), 0),
	call("change a file's mode", unix.SYS_FCHMODAT, atCWD, text("/tmp"), 0o777),
	call("mount", unix.SYS_MOUNT, text("none"), text("/tmp"), text("tmpfs")),
	call("change the root directory", unix.SYS_CHROOT, text("/tmp")),
	call("watch files", unix.SYS_INOTIFY_INIT1, 0),

	// Other processes.
	call("signal the parent", unix.SYS_KILL, uintptr(os.Getppid()), 15),
	call("kill all processes that it may signal", unix.SYS_KILL, invalid, 9),
	call("signal its siblings, the keeper and the namespace init: pid 1", unix.SYS_KILL, 1, 9),
	call("signal a thread of another process", unix.SYS_TGKILL, 4_000_000, 4_000_000, 9), // not pid 1, which can be the worker itself
	call("open a process (pidfd_open)", unix.SYS_PIDFD_OPEN, 1, 0),
	call("take a descriptor from a process", unix.SYS_PIDFD_GETFD, 3, 0, 0),
	call("read the memory of another process", unix.SYS_PROCESS_VM_READV, 1, 0, 0, 0, 0, 0),
	call("write the memory of another process", unix.SYS_PROCESS_VM_WRITEV, 1, 0, 0, 0, 0, 0),
	call("debug another process (ptrace)", unix.SYS_PTRACE, unix.PTRACE_ATTACH, 1, 0, 0),
	call("change the parent's limits", unix.SYS_PRLIMIT64, uintptr(os.Getppid()), unix.RLIMIT_NOFILE, 0, 0),
	call("change the priority of other processes", unix.SYS_SETPRIORITY, unix.PRIO_USER, 0, 19),

	// Programs, privileges, namespaces.
	call("fork", unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0),
	call("clone3", unix.SYS_CLONE3, 0, 0),
	call("execute /bin/sh", unix.SYS_EXECVE, text("/bin/sh"), 0, 0),
	call("execute a descriptor", unix.SYS_EXECVEAT, ipc.WorkerFD, text(""), 0, 0, unix.AT_EMPTY_PATH),
	call("make a program in memory", unix.SYS_MEMFD_CREATE, text("x"), 0),
	call("become root", unix.SYS_SETUID, 0),
	call("become gid 0", unix.SYS_SETGID, 0),
	call("gain groups", unix.SYS_SETGROUPS, 0, 0),
	call("gain capabilities", unix.SYS_CAPSET, 0, 0),
	call("unshare a user namespace", unix.SYS_UNSHARE, unix.CLONE_NEWUSER),
	call("enter a namespace", unix.SYS_SETNS, 3, 0),
	call("raise its own limits", unix.SYS_SETRLIMIT, unix.RLIMIT_FSIZE, 0),
	call("become dumpable", unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1),

	// Memory.
	call("map memory that is writable and executable", unix.SYS_MMAP, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON, invalid, 0),
	call("make memory executable", unix.SYS_MPROTECT, 0, 0, unix.PROT_EXEC),
	call("share memory", unix.SYS_SHMGET, 0, 4096, 0),

	// The kernel.
	call("io_uring", unix.SYS_IO_URING_SETUP, 1, 0),
	call("bpf", unix.SYS_BPF, 0, 0, 0),
	call("keyctl", unix.SYS_KEYCTL, 0, 0),
	call("add_key", unix.SYS_ADD_KEY, 0, 0, 0, 0),
	call("userfaultfd", unix.SYS_USERFAULTFD, 0),
	call("perf_event_open", unix.SYS_PERF_EVENT_OPEN, 0, 0, invalid, invalid, 0),
	call("install another filter", unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, 0),
	call("load a module", unix.SYS_INIT_MODULE, 0, 0, text("")),
	call("load a kernel", unix.SYS_KEXEC_LOAD, 0, 0, 0, 0),
	call("set the clock", unix.SYS_CLOCK_SETTIME, 0, 0),
	call("type into a terminal (TIOCSTI)", unix.SYS_IOCTL, 2, unix.TIOCSTI, 0),

	// The network.
	family("IPv4", unix.AF_INET, unix.SOCK_STREAM),
	family("IPv4, UDP", unix.AF_INET, unix.SOCK_DGRAM),
	family("IPv4, raw", unix.AF_INET, unix.SOCK_RAW),
	family("IPv6", unix.AF_INET6, unix.SOCK_STREAM),
	family("UNIX", unix.AF_UNIX, unix.SOCK_STREAM),
	family("UNIX datagram", unix.AF_UNIX, unix.SOCK_DGRAM),
	family("netlink", unix.AF_NETLINK, unix.SOCK_RAW),
	family("packet", unix.AF_PACKET, unix.SOCK_RAW),
	family("vsock", unix.AF_VSOCK, unix.SOCK_STREAM),
	family("kernel crypto", unix.AF_ALG, unix.SOCK_SEQPACKET),
	family("Bluetooth", unix.AF_BLUETOOTH, unix.SOCK_RAW),
	family("XDP", unix.AF_XDP, unix.SOCK_RAW),
	call("make a pair of sockets", unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM, 0, 0),
	{"disconnect a client's socket (AF_UNSPEC)", func() string { return onClient(unix.SYS_CONNECT, address(unix.AF_UNSPEC), 16) }},
	{"connect that socket to another address", func() string { return onClient(unix.SYS_CONNECT, address(unix.AF_INET), 16) }},
	{"bind that socket", func() string { return onClient(unix.SYS_BIND, address(unix.AF_INET), 16) }},
	{"listen on that socket", func() string { return onClient(unix.SYS_LISTEN, 1) }},
	{"make the parent wait when it closes that socket (SO_LINGER)", func() string {
		return onClient(unix.SYS_SETSOCKOPT, unix.SOL_SOCKET, unix.SO_LINGER, text("\x01\x00\x00\x00\x00\x0e"), 8)
	}},
	{"accept on that socket", func() string { return onClient(unix.SYS_ACCEPT4, 0, 0, 0) }},

	// The parent, over the worker's channel.
	frame("a message that is not in the protocol table", 99, 0, 0),
	frame("kind 0", 0, 0, 0),
	frame("the dispatcher's message Drain", ipc.KindOf(new(work.Drain)), 0, 0),
	frame("Setup, to the dispatcher", ipc.KindOf(new(ipc.Setup)), 200, 0),
	frame("a connection, to the dispatcher", ipc.KindOf(new(ipc.Connection)), 27, 0),
	frame("secret keys, to the dispatcher", ipc.KindOf(new(ipc.SecretKeys)), 4, 0),
	frame("public keys, to the dispatcher", ipc.KindOf(new(work.Keys)), 6, 0),
	frame("a client of the keeper (WorkerChannel), to the dispatcher", ipc.KindOf(new(work.WorkerChannel)), 4, 0),
	frame("a channel to the keeper, to the dispatcher", ipc.KindOf(new(work.ServiceChannel)), 1, 0),
	frame("KeysResult for the second time", ipc.KindOf(new(ipc.KeysResult)), 4, 0, 0, 1),
	frame("the keeper's message WorkerViolation, about a sibling", ipc.KindOf(new(work.WorkerViolation)), 6, 0, 0, 2),
	frame("a request to sign, to the dispatcher", ipc.KindOf(new(query.Sign)), 16, 0),
	frame("a request to verify, to the dispatcher", ipc.KindOf(new(query.Verify)), 42, 0),
	frame("Ready for the second time", ipc.KindOf(new(ipc.Ready)), 2, 0),
	frame("Refused, after Ready", ipc.KindOf(new(ipc.Refused)), 2, 0),
	frame("ConnectionDone for a connection that it does not hold", ipc.KindOf(new(work.ConnectionDone)), 8, 0),
	frame("ConnectionTaken for a connection that it was not given", ipc.KindOf(new(work.ConnectionTaken)), 8, 0),
	{"Progress for a connection that it does not hold", func() string { return sendAndWait(&work.Progress{ID: 1 << 40, Stage: work.Idle}) }},
	frame("Progress with an invalid state", ipc.KindOf(new(work.Progress)), 9, 0),
	frame("Pong without Ping", ipc.KindOf(new(ipc.Pong)), 8, 0),
	frame("a truncated message", ipc.KindOf(new(work.ConnectionDone)), 3, 0),
	frame("a message with trailing bytes", ipc.KindOf(new(work.ConnectionDone)), 9, 0),
	frame("an oversized message", ipc.KindOf(new(work.ConnectionDone)), 60_000, 0),
	frame("a descriptor with a message that may have none", ipc.KindOf(new(work.ConnectionDone)), 8, 1),
	frame("100 descriptors", ipc.KindOf(new(work.ConnectionDone)), 8, 100),
	{"a connection to a daemon that is not in the configuration", func() string { return sendAndWait(&work.Dial{Upstream: work.UpstreamController, Index: 200}) }},
	{"a connection to a socket that is not in the configuration", func() string { return sendAndWait(&work.Dial{Upstream: work.UpstreamMunge}) }},
	frame("prepared sockets for a daemon that is not in the configuration", ipc.KindOf(new(work.DialBatch)), 3, 0, 1, 200),
	frame("prepared sockets, as if from the dispatcher", ipc.KindOf(new(work.DialedBatch)), 2, 0),
	frame("a connection with an invalid upstream", ipc.KindOf(new(work.Dial)), 12, 0, 8, 99),
	frame("a connection that excludes an invalid address", ipc.KindOf(new(work.Dial)), 14, 0, 10, 1),
	frame("a connection that excludes 17 addresses", ipc.KindOf(new(work.Dial)), 12+17*6, 0, 10, 17),
	frame("a request for a name, to the dispatcher", ipc.KindOf(new(work.Lookup)), 15, 0),
	frame("a request for a host's addresses, to the dispatcher", ipc.KindOf(new(work.HostLookup)), 10, 0),
	frame("a host's addresses, as if from the resolver", ipc.KindOf(new(work.HostAddresses)), 10, 0),
	frame("a name, as if from the resolver", ipc.KindOf(new(work.LookupResult)), 15, 0),
	frame("the announcement of a change, to the dispatcher", ipc.KindOf(new(query.Intent)), 34, 0),
	frame("the outcome of a change, to the dispatcher", ipc.KindOf(new(query.Outcome)), 18, 0),
	frame("the request CheckLogFile, as if from the auditor", ipc.KindOf(new(ipc.CheckLogFile)), 0, 0),
	{"400 connections to daemons at once", func() string {
		for i := range uint64(400) {
			send(&work.Dial{ID: 1<<32 + i, Upstream: work.UpstreamController})
		}
		return "continues"
	}},
	{"endless requests for connections to daemons", func() string {
		for i := uint64(0); ; i++ {
			send(&work.Dial{ID: 1<<32 + i, Upstream: work.UpstreamController})
		}
	}},
	{"20 000 lines of log", func() string {
		for range 20_000 {
			_, _ = os.Stderr.WriteString("captured level=ERROR msg=\"root\x1b[2J\" worker=1\n")
		}
		return "continues"
	}},
	{"its side of the channel shut down", func() string { _ = unix.Shutdown(ipc.WorkerFD, unix.SHUT_WR); return wait() }},
	{"an empty packet", func() string { _, _ = unix.Write(ipc.WorkerFD, nil); return wait() }},
}

const invalid = ^uintptr(0)

var atCWD = uintptr(unix.AT_FDCWD & (1<<64 - 1))

// pinned holds the strings whose addresses are passed to system calls. It keeps
// the garbage collector from freeing them.
var pinned [][]byte

func text(s string) uintptr {
	pinned = append(pinned, append([]byte(s), 0))
	return uintptr(unsafe.Pointer(&pinned[len(pinned)-1][0]))
}

// address returns a loopback address of the given family, with port 1.
func address(family uint16) uintptr {
	pinned = append(pinned, []byte{byte(family), byte(family >> 8), 0, 1, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0})
	return uintptr(unsafe.Pointer(&pinned[len(pinned)-1][0]))
}

// call returns an attack that makes one system call.
func call(name string, number uintptr, args ...uintptr) attack {
	return attack{name, func() string { return sys(number, args...) }}
}

func sys(number uintptr, args ...uintptr) string {
	var a [6]uintptr
	copy(a[:], args)
	r, _, e := unix.RawSyscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if e != 0 {
		return unix.ErrnoName(e)
	}
	return fmt.Sprintf("DONE (%d)", r)
}

func family(name string, number, kind uintptr) attack {
	return call("a socket: "+name, unix.SYS_SOCKET, number, kind, 0)
}

// onClient makes a system call on the connection of the client that asks for
// the attack.
func onClient(number uintptr, args ...uintptr) string {
	for fd := ipc.WorkerFD + 1; fd < 100; fd++ {
		var name unix.RawSockaddrAny
		size := uint32(unsafe.Sizeof(name))
		_, _, e := unix.RawSyscall(unix.SYS_GETPEERNAME, uintptr(fd), uintptr(unsafe.Pointer(&name)), uintptr(unsafe.Pointer(&size)))
		if e == 0 && name.Addr.Family == unix.AF_INET {
			return sys(number, append([]uintptr{uintptr(fd)}, args...)...)
		}
	}
	return "NO CONNECTION FOUND"
}

// frame returns an attack that sends one message of the given kind, with size
// bytes of zeros. The values argument is a list of pairs: an offset, and the
// byte to put there.
func frame(name string, kind ipc.Kind, size, fds int, values ...int) attack {
	return attack{name, func() string {
		raw := append([]byte{byte(kind)}, make([]byte, size)...)
		for i := 0; i+1 < len(values); i += 2 {
			raw[1+values[i]] = byte(values[i+1])
		}
		sendFrame(raw, fds)
		return wait()
	}}
}

func sendAndWait(m ipc.Message) string { send(m); return wait() }

// send sends a message. It does not use package ipc, because that package would
// enforce the protocol table.
func send(m ipc.Message) {
	raw := []byte{byte(ipc.KindOf(m))}
	put := func(n uint64, bytes int) {
		for i := range bytes {
			raw = append(raw, byte(n>>(8*i)))
		}
	}
	switch m := m.(type) {
	case *work.Progress:
		put(m.ID, 8)
		put(uint64(m.Stage), 1)
	case *work.Dial:
		put(m.ID, 8)
		put(uint64(m.Upstream), 1)
		put(uint64(m.Index), 1)
		put(0, 2) // no address was tried
	}
	sendFrame(raw, 0)
}

func sendFrame(raw []byte, fds int) {
	var oob []byte
	if fds > 0 {
		list := make([]int, fds)
		for i := range list {
			list[i] = 2
		}
		oob = unix.UnixRights(list...)
	}
	for sendRights(ipc.WorkerFD, raw, oob) == unix.EAGAIN {
		time.Sleep(time.Millisecond)
	}
}

// sendRights sends raw and the descriptors in oob. If there are descriptors, it
// needs a system call that the sandbox forbids.
func sendRights(fd int, raw, oob []byte) error {
	if len(oob) == 0 {
		_, err := unix.Write(fd, raw)
		return err
	}
	return unix.Sendmsg(fd, raw, oob, nil, 0)
}

// wait waits until the parent kills this process.
func wait() string {
	time.Sleep(patience)
	return "NOTHING HAPPENED"
}

// capture handles the attacker's requests.
func capture(w http.ResponseWriter, r *http.Request) {
	captureOf(slices.Concat(attacks, countAttacks), w, r)
}

// captureOf carries out the attack in list that the request names, and answers
// with the outcome.
func captureOf(list []attack, w http.ResponseWriter, r *http.Request) {
	for _, a := range list {
		if a.name == r.FormValue("name") {
			fmt.Fprint(w, a.do())
			return
		}
	}
	fmt.Fprint(w, "NO SUCH ATTACK")
}
