package sandbox

import (
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
)

// probe is a forbidden operation, with the error that it must return in the
// sandbox (want). Without the sandbox the operation does no harm and does not
// return this error.
type probe struct {
	name   string
	number uintptr
	args   [6]uintptr
	want   unix.Errno
	undo   func(got uintptr) // undoes an operation that succeeded
	skip   func(Options) bool
}

// Strings and socket addresses that probes point to. They must live as long as
// the program, because the probes hold pointers to them as plain numbers.
var (
	rootPath     = [...]byte{'/', 0}
	statusPath   = append([]byte("/proc/self/status"), 0)
	emptyPath    = [1]byte{}
	loopbackAddr = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: 1 << 8, Addr: [4]byte{127, 0, 0, 1}}
	unixAddr     = unix.RawSockaddrUnix{Family: unix.AF_UNIX, Path: [108]int8{'/'}}
	fdPair       [2]int32
	noArgs       [1]uintptr
	emptyOpenHow unix.OpenHow
	addressOf    = func(p *byte) uintptr { return uintptr(unsafe.Pointer(p)) }
)

const invalid = ^uintptr(0) // there is no such descriptor, uid or pid

// atCWD makes openat and similar calls start at the working directory.
var atCWD = uintptr(unix.AT_FDCWD & (1<<64 - 1))

// probes lists the operations in the order in which runProbes tries them.
// Values that a filter can't see, such as the text of a path or the content of
// an address, are arbitrary.
var probes = append([]probe{
	{name: "open /", number: unix.SYS_OPENAT, args: [6]uintptr{atCWD, addressOf(&rootPath[0]), unix.O_RDONLY | unix.O_CLOEXEC}, undo: closeFD, skip: opensFiles},
	{name: "open /proc/self/status", number: unix.SYS_OPENAT, args: [6]uintptr{atCWD, addressOf(&statusPath[0]), unix.O_RDONLY | unix.O_CLOEXEC}, undo: closeFD, skip: opensFiles},
	{name: "openat2 /", number: unix.SYS_OPENAT2, args: [6]uintptr{atCWD, addressOf(&rootPath[0]), uintptr(unsafe.Pointer(&emptyOpenHow)), unsafe.Sizeof(emptyOpenHow)}, undo: closeFD},
	{name: "execute a program", number: unix.SYS_EXECVE, args: [6]uintptr{addressOf(&rootPath[0]), uintptr(unsafe.Pointer(&noArgs)), uintptr(unsafe.Pointer(&noArgs))}},
	{name: "execute a program by descriptor", number: unix.SYS_EXECVEAT, args: [6]uintptr{invalid, addressOf(&emptyPath[0]), uintptr(unsafe.Pointer(&noArgs)), uintptr(unsafe.Pointer(&noArgs)), unix.AT_EMPTY_PATH}},
	{name: "connect to 127.0.0.1", number: unix.SYS_CONNECT, args: [6]uintptr{invalid, uintptr(unsafe.Pointer(&loopbackAddr)), unsafe.Sizeof(loopbackAddr)}, skip: mayConnect},
	{name: "connect to a UNIX socket", number: unix.SYS_CONNECT, args: [6]uintptr{invalid, uintptr(unsafe.Pointer(&unixAddr)), unsafe.Sizeof(unixAddr)}, skip: mayConnect},
	socketProbe("IPv4", unix.AF_INET, unix.SOCK_STREAM).skipIf(isDispatcher),
	socketProbe("IPv4 UDP", unix.AF_INET, unix.SOCK_DGRAM),
	socketProbe("IPv6", unix.AF_INET6, unix.SOCK_STREAM).skipIf(isDispatcher),
	socketProbe("netlink", unix.AF_NETLINK, unix.SOCK_RAW).skipIf(isDispatcher),
	socketProbe("packet", unix.AF_PACKET, unix.SOCK_RAW),
	socketProbe("vsock", unix.AF_VSOCK, unix.SOCK_STREAM),
	socketProbe("kernel crypto", unix.AF_ALG, unix.SOCK_SEQPACKET),
	socketProbe("UNIX datagram", unix.AF_UNIX, unix.SOCK_DGRAM),
	socketProbe("UNIX", unix.AF_UNIX, unix.SOCK_STREAM).skipIf(dialsUnix),
	{name: "make a pair of sockets", number: unix.SYS_SOCKETPAIR, args: [6]uintptr{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, 0, uintptr(unsafe.Pointer(&fdPair))}, undo: closeFDPair},
	{name: "become uid 0", number: unix.SYS_SETUID, args: [6]uintptr{0}},
	{name: "set the three uids to their present values", number: unix.SYS_SETRESUID, args: [6]uintptr{invalid, invalid, invalid}}, // without the filter every process may do this
	{name: "become gid 0", number: unix.SYS_SETGID, args: [6]uintptr{0}},
	{name: "set the three gids to their present values", number: unix.SYS_SETRESGID, args: [6]uintptr{invalid, invalid, invalid}},
	{name: "set supplementary groups", number: unix.SYS_SETGROUPS, args: [6]uintptr{invalid}},
	{name: "debug a process", number: unix.SYS_PTRACE, args: [6]uintptr{unix.PTRACE_PEEKTEXT, 0}}, // not TRACEME: if that were allowed, the process would stop indefinitely
	{name: "map memory that can be written and executed", number: unix.SYS_MMAP, args: [6]uintptr{0, 4096, unix.PROT_READ | unix.PROT_WRITE | unix.PROT_EXEC, unix.MAP_PRIVATE | unix.MAP_ANON, invalid}, undo: unmap},
	{name: "make memory executable", number: unix.SYS_MPROTECT, args: [6]uintptr{0, 0, unix.PROT_EXEC}},
	{name: "make memory executable by key", number: unix.SYS_PKEY_MPROTECT, args: [6]uintptr{0, 0, unix.PROT_EXEC, invalid}},
	{name: "clone with arguments in memory", number: unix.SYS_CLONE3, want: unix.ENOSYS},
}, archProbes...)

// dialsUnix reports whether the process connects to UNIX sockets.
func dialsUnix(o Options) bool { return o.Kind == Worker && o.Unix || o.Kind == Credential }

// isDispatcher reports whether the process opens files and TCP connections.
func isDispatcher(o Options) bool { return o.Kind == Dispatcher }

// opensFiles reports whether the process opens files for reading.
func opensFiles(o Options) bool { return isDispatcher(o) || o.Kind == Output }

// mayConnect reports whether the process connects to anything.
func mayConnect(o Options) bool { return dialsUnix(o) || isDispatcher(o) }

func (p probe) skipIf(skip func(Options) bool) probe { p.skip = skip; return p }

func socketProbe(name string, family, kind uintptr) probe {
	return probe{name: "make a socket: " + name, number: unix.SYS_SOCKET, args: [6]uintptr{family, kind | unix.SOCK_CLOEXEC, 0}, undo: closeFD}
}

func closeFD(fd uintptr) { unix.RawSyscall(unix.SYS_CLOSE, fd, 0, 0) }

func closeFDPair(uintptr) {
	for _, fd := range fdPair {
		closeFD(uintptr(fd))
	}
}

func unmap(address uintptr) { unix.RawSyscall(unix.SYS_MUNMAP, address, 4096, 0) }

// runProbes tries every forbidden operation, in a way that changes nothing if
// the operation is allowed. If operations have unexpected results, runProbes
// returns an error that names them. Call runProbes once, after installFilter.
// It also works in audit mode, because the filter still returns errors for
// these operations.
func runProbes(o Options) error {
	var failures []string
	for i := range probes {
		p := &probes[i]
		if p.skip != nil && p.skip(o) {
			continue
		}
		want := p.want
		if want == 0 {
			want = unix.EPERM
		}
		got, _, e := unix.RawSyscall6(p.number, p.args[0], p.args[1], p.args[2], p.args[3], p.args[4], p.args[5])
		switch {
		case e == want:
		case e != 0:
			failures = append(failures, fmt.Sprintf("%s (returned %s, not %s)", p.name, unix.ErrnoName(e), unix.ErrnoName(want)))
		default:
			if p.undo != nil {
				p.undo(got)
			}
			failures = append(failures, p.name+" (done)")
		}
	}
	if len(failures) > 0 {
		return errs.New(errs.Denied, "%d operations that the sandbox must forbid are allowed: %s", len(failures), strings.Join(failures, "; "))
	}
	return nil
}

// Probes returns the names of the operations that runProbes tries for the
// options o.
func Probes(o Options) []string {
	var list []string
	for _, p := range probes {
		if p.skip == nil || !p.skip(o) {
			list = append(list, p.name)
		}
	}
	return list
}
