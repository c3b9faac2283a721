package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestDenyFiles checks that Landlock alone, without the filter, keeps every
// thread from opening, creating or executing files, and from connecting.
func TestDenyFiles(t *testing.T) {
	version, err := landlockVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version == 0 {
		t.Skip("this kernel has no Landlock")
	}
	everyUser(t, func(t *testing.T, as *syscall.Credential) {
		for _, o := range []Options{{}, {Unix: true}, {Kind: Keeper}} {
			out, status := child(t, "files", o, as)
			checkSurvived(t, out, status)
			want := fmt.Sprintf("<nil>\non: Landlock %d (files", version)
			if !strings.HasPrefix(out, want) || !strings.HasSuffix(out, ")\n<nil>\nend\n") {
				t.Errorf("%+v: got %q, want %q…", o, out, want)
			}
			if version >= 4 && !strings.Contains(out, "TCP") {
				t.Errorf("TCP is not denied: %q", out)
			}
		}
	})
}

// TestOlderVersions checks that the kernel accepts and enforces the rulesets for
// all versions of Landlock up to its own. So it does what the kernels of other
// systems would do, as far as a newer kernel can show.
func TestOlderVersions(t *testing.T) {
	if version, _ := landlockVersion(); version == 0 {
		t.Skip("this kernel has no Landlock")
	}
	for _, o := range []Options{{}, {Unix: true}} {
		out, status := child(t, "older", o, nil)
		checkSurvived(t, out, status)
		if out != "<nil>\nend\n" {
			t.Errorf("%+v: got %q", o, out)
		}
	}
}

// tryDenied tries the operations that Landlock denies. It also tries file
// operations on threads that were started before Landlock denied them.
func tryDenied(onEarlyThreads func(func() error) error) error {
	list := []error{tryFiles(), onEarlyThreads(tryFiles)}
	if version, _ := landlockVersion(); version >= 4 {
		_, err := net.Dial("tcp", "127.0.0.1:9")
		list = append(list, checkDenied("connect", err))
		_, err = net.Listen("tcp4", "127.0.0.1:0")
		if !errors.Is(err, unix.EACCES) && !multipath() {
			list = append(list, fmt.Errorf("listen: %v", err))
		}
	}
	return errors.Join(list...)
}

func tryFiles() error {
	_, err := os.ReadFile("/etc/hostname")
	_, err2 := os.ReadDir("/")
	fresh := filepath.Join(os.TempDir(), fmt.Sprint("sandbox-", os.Getpid(), "-", unix.Gettid()))
	err3 := os.WriteFile(fresh, nil, 0o600)
	err4 := unix.Mkdir(fresh+".d", 0o700)
	_, err5 := syscall.ForkExec("/bin/true", []string{"true"}, nil)
	return errors.Join(checkDenied("read", err), checkDenied("list", err2), checkDenied("write", err3), checkDenied("make", err4), checkDenied("execute", err5))
}

func checkDenied(op string, err error) error {
	if errors.Is(err, unix.EACCES) {
		return nil
	}
	return fmt.Errorf("%s: %v", op, err)
}

// multipath reports whether Go's listeners use Multipath TCP, which Landlock
// does not restrict.
func multipath() bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)
	if err == nil {
		unix.Close(fd)
	}
	return err == nil
}

// TestReconnect checks that a worker that may connect to UNIX sockets can't
// reconnect a received TCP connection to another address. The filter allows
// connect(2), so Landlock must deny it.
func TestReconnect(t *testing.T) {
	if version, _ := landlockVersion(); version < 4 {
		t.Skip("this kernel's Landlock knows no TCP")
	}
	out, status := child(t, "reconnect", Options{}, nil)
	checkSurvived(t, out, status)
	if out != "before: <nil>; after: permission denied\nend\n" {
		t.Errorf("got %q", out)
	}
}

func reconnect() error {
	var plain net.ListenConfig
	plain.SetMultipathTCP(false) // Landlock does not cover Multipath TCP; the parent's listeners do not use it either
	ln, err := plain.Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	target := &unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: [4]byte{127, 0, 0, 1}}
	port := ln.Addr().(*net.TCPAddr).Port
	target.Port = uint16(port<<8 | port>>8)
	acceptedConn := func() (int, error) { // returns an accepted connection
		if _, err := net.Dial("tcp4", ln.Addr().String()); err != nil {
			return -1, err
		}
		return acceptOne(ln)
	}
	first, err := acceptedConn()
	if err != nil {
		return err
	}
	second, err := acceptedConn()
	if err != nil {
		return err
	}
	before := redirect(first, target)
	noNewPrivs()
	o := Options{Unix: true}
	if _, err := denyFiles(o); err != nil {
		return err
	}
	if err := installFilter(o); err != nil {
		return err
	}
	after := redirect(second, target)
	return fmt.Errorf("before: %v; after: %v", before, after)
}

func acceptOne(ln net.Listener) (int, error) {
	c, err := ln.Accept()
	if err != nil {
		return -1, err
	}
	f, err := c.(*net.TCPConn).File()
	if err != nil {
		return -1, err
	}
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
}

// redirect disconnects the socket fd, and then connects it to another address.
func redirect(fd int, target *unix.RawSockaddrInet4) error {
	unspec := unix.RawSockaddr{Family: unix.AF_UNSPEC}
	if _, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&unspec)), unsafe.Sizeof(unspec)); e != 0 {
		return fmt.Errorf("undo: %w", e)
	}
	if _, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(target)), unsafe.Sizeof(*target)); e != 0 {
		return e
	}
	return nil
}

// TestHasScope checks that a scope that the kernel does not have is not used.
func TestHasScope(t *testing.T) {
	if version, _ := landlockVersion(); version < sinceScope {
		t.Skip("this kernel's Landlock knows no scopes")
	}
	if !hasScope(unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET) || hasScope(unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET|1<<62) {
		t.Error("wrong scopes")
	}
}
