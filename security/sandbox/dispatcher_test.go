package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/internal/sockaddr"
	"schedrestd/internal/sockdiag"
	"schedrestd/internal/sockdiag/portowner"
)

var devZero = append([]byte("/dev/zero"), 0)

// openTest returns a death test that opens a file with the given flags.
func openTest(purpose string, flags uintptr) deathTest {
	return deathTest{"open " + purpose, unix.SYS_OPENAT, [6]uintptr{atCWD, addressOf(&devZero[0]), flags}}
}

// dispatcherDeathTests lists the dispatcher's death tests in addition to
// deathTests. Most of these calls are allowed with other arguments, or in other
// processes.
var dispatcherDeathTests = []deathTest{
	openTest("for writing", unix.O_WRONLY|unix.O_CLOEXEC),
	openTest("for reading and writing", unix.O_RDWR|unix.O_CLOEXEC),
	openTest("with O_CREAT", unix.O_RDONLY|unix.O_CREAT|unix.O_CLOEXEC),
	openTest("with O_TRUNC", unix.O_RDONLY|unix.O_TRUNC|unix.O_CLOEXEC),
	openTest("with O_APPEND", unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC),
	openTest("with O_TMPFILE", unix.O_WRONLY|unix.O_TMPFILE|unix.O_CLOEXEC),
	openTest("for a program that would be started", unix.O_RDONLY),
	openTest("with more than 32 bits", highBit|unix.O_RDONLY|unix.O_CLOEXEC),
	{"connect to a UNIX socket", unix.SYS_CONNECT, [6]uintptr{invalid, 0, unix.SizeofSockaddrUnix}},
	{"connect of a netlink socket", unix.SYS_CONNECT, [6]uintptr{invalid, 0, unix.SizeofSockaddrNetlink}},
	{"bind of a TCP socket", unix.SYS_BIND, [6]uintptr{invalid, 0, unix.SizeofSockaddrInet4}},
	{"bind of a UNIX socket", unix.SYS_BIND, [6]uintptr{invalid, 0, unix.SizeofSockaddrUnix}},
	{"sendto an address of TCP", unix.SYS_SENDTO, [6]uintptr{invalid, 0, 0, 0, 0, unix.SizeofSockaddrInet4}},
	{"sendto(MSG_FASTOPEN)", unix.SYS_SENDTO, [6]uintptr{invalid, 0, 0, unix.MSG_FASTOPEN, 0, unix.SizeofSockaddrNetlink}},
	{"setsockopt(SO_LINGER)", unix.SYS_SETSOCKOPT, [6]uintptr{invalid, unix.SOL_SOCKET, unix.SO_LINGER}},
	{"setsockopt(SO_MARK)", unix.SYS_SETSOCKOPT, [6]uintptr{invalid, unix.SOL_SOCKET, unix.SO_MARK}},
	{"setsockopt(IP_TRANSPARENT)", unix.SYS_SETSOCKOPT, [6]uintptr{invalid, unix.IPPROTO_IP, unix.IP_TRANSPARENT}},
	{"ioctl(SIOCSIFFLAGS)", unix.SYS_IOCTL, [6]uintptr{invalid, unix.SIOCSIFFLAGS}},
	{"pipe2(O_DIRECT)", unix.SYS_PIPE2, [6]uintptr{0, unix.O_DIRECT}},
	{"lseek", unix.SYS_LSEEK, [6]uintptr{invalid}},
	{"pread64", unix.SYS_PREAD64, [6]uintptr{invalid}},
	{"pwritev", unix.SYS_PWRITEV, [6]uintptr{invalid}},
	{"fdatasync", unix.SYS_FDATASYNC, [6]uintptr{invalid}},
}

// deathTestsOf returns the names of the death tests for the given kind of
// process.
func deathTestsOf(kind Kind) []string {
	names := DeathTests()
	if kind == Dispatcher {
		for _, a := range dispatcherDeathTests {
			names = append(names, a.name)
		}
	}
	return names
}

// runAnyDeathTest works like RunDeathTest, but also accepts the names in
// dispatcherDeathTests.
func runAnyDeathTest(name string) error {
	for _, a := range dispatcherDeathTests {
		if a.name == name {
			return fmt.Errorf("%s returned (%w) instead of killing the process", name, a.makeCall())
		}
	}
	return RunDeathTest(name)
}

// TestDispatch checks that the dispatcher can do its work inside its sandbox.
func TestDispatch(t *testing.T) {
	everyUser(t, func(t *testing.T, as *syscall.Credential) {
		out, status := child(t, "dispatch", Options{}, as)
		checkSurvived(t, out, status)
		if out != "<nil>\nend\n" {
			t.Error(out)
		}
	})
}

// dispatch does the dispatcher's work inside the sandbox.
func dispatch() error {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	socket, err := listenUnix()
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "answers")
	if err != nil {
		return err
	}
	noNewPrivs()
	if _, err := Close(Options{Kind: Dispatcher}, false); err != nil {
		return err
	}
	return errors.Join(connect(tcp.Addr().String()), interfaces(), handOver(), inode(socket), relay(file), readPorts(), takeDescriptor(), threads(), unix.Close(Channel))
}

// connect opens a connection to address, and looks up the uid of the process
// that serves it.
func connect(address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	family, sa := sockaddr.Sockaddr(to)
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for option, level := range map[int]int{unix.TCP_NODELAY: unix.IPPROTO_TCP, unix.TCP_FASTOPEN_NO_COOKIE: unix.IPPROTO_TCP, ipLocalPortRange: unix.IPPROTO_IP} {
		_ = unix.SetsockoptInt(fd, level, option, 0) // the kernel may lack the option
	}
	if err := unix.Connect(fd, sa); err != nil && err != unix.EINPROGRESS {
		return err
	}
	local, remote, err := sockdiag.Addrs(fd)
	if err != nil {
		return err
	}
	if _, err := portowner.ServerUID(local, remote); err != nil && !errors.Is(err, sockdiag.ErrUnknown) {
		return err
	}
	_, err = portowner.IsLocal(to.Addr())
	return err
}

// interfaces looks up a network interface, which is necessary for the zone of
// an IPv6 address.
func interfaces() error {
	_, err := net.InterfaceByName("lo")
	return err
}

// handOver sends a descriptor over a new channel and receives it at the other
// end.
func handOver() error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	if err := unix.Sendmsg(fds[0], []byte("x"), unix.UnixRights(fds[1]), nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL); err != nil {
		return err
	}
	unread, err := unix.IoctlGetInt(fds[0], unix.SIOCOUTQ)
	if err != nil || unread == 0 {
		return fmt.Errorf("%d bytes were not read: %w", unread, orNoError(err))
	}
	_, n, _, _, err := unix.Recvmsg(fds[1], make([]byte, 1), make([]byte, unix.CmsgSpace(4)), unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	if err == nil && n == 0 {
		err = errors.New("no descriptor came")
	}
	polled := []unix.PollFd{{Fd: int32(fds[0]), Events: unix.POLLRDHUP}}
	_, failed := unix.Poll(polled, 0)
	return errors.Join(err, failed, unix.Close(fds[0]), unix.Close(fds[1]))
}

// inode opens the inode of a UNIX socket without connecting.
func inode(path string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	return errors.Join(unix.Fstat(fd, &st), unix.Stat("/", &st))
}

// relay copies the content of a pipe to an open file, as the dispatcher does in
// inetd mode.
func relay(file *os.File) error {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	_ = unix.SetNonblock(fds[0], true)
	from, to := os.NewFile(uintptr(fds[0]), "answers"), os.NewFile(uintptr(fds[1]), "")
	answers := bytes.Repeat([]byte("answer\n"), 50_000)
	go func() {
		_, _ = to.Write(answers)
		to.Close()
	}()
	n, err := io.Copy(file, from)
	if err == nil && n != int64(len(answers)) {
		err = fmt.Errorf("%d of %d bytes were copied", n, len(answers))
	}
	return errors.Join(err, from.Close(), file.Close())
}

func readPorts() error {
	_, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	return err
}
