package listen

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/internal/socket/sockettest"
	"schedrestd/ipc"
)

// TestAdopt checks that adopt asks the kernel, not the environment, what kind
// of socket a passed descriptor is.
func TestAdopt(t *testing.T) {
	file := func(t *testing.T, domain, kind int, address unix.Sockaddr, name string) *os.File {
		fd, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC, 0)
		if err == nil && address != nil {
			err = unix.Bind(fd, address)
		}
		if err == nil && address != nil && kind != unix.SOCK_DGRAM {
			err = unix.Listen(fd, 1)
		}
		if err != nil {
			t.Skip(err)
		}
		return os.NewFile(uintptr(fd), name)
	}
	loopback := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	path := filepath.Join(sockettest.Dir(t), "s")
	abstract := "@schedrestd-test-" + strconv.Itoa(os.Getpid())
	for _, tt := range []struct {
		name    string
		file    *os.File
		network ipc.Network
		listens string // start of the listener's name
		tls     bool
		bad     string
	}{
		{"TCP", file(t, unix.AF_INET, unix.SOCK_STREAM, loopback, "http"), ipc.TCP, "127.0.0.1:", false, ""},
		{"TLS", file(t, unix.AF_INET, unix.SOCK_STREAM, loopback, "https"), ipc.TCP, "127.0.0.1:", true, ""},
		{"UNIX", file(t, unix.AF_UNIX, unix.SOCK_STREAM, &unix.SockaddrUnix{Name: path}, ""), ipc.Unix, "unix:" + path, false, ""},
		{"TLS on UNIX", file(t, unix.AF_UNIX, unix.SOCK_STREAM, &unix.SockaddrUnix{Name: path + "2"}, "https"), 0, "", false, "TLS needs TCP"},
		{"abstract", file(t, unix.AF_UNIX, unix.SOCK_STREAM, &unix.SockaddrUnix{Name: abstract}, ""), 0, "", false, "abstract"},
		{"packets", file(t, unix.AF_UNIX, unix.SOCK_SEQPACKET, &unix.SockaddrUnix{Name: path + "3"}, ""), 0, "", false, "is not a listening stream socket"},
		{"datagrams", file(t, unix.AF_INET, unix.SOCK_DGRAM, loopback, ""), 0, "", false, "is not a listening stream socket"},
		{"not bound", file(t, unix.AF_INET, unix.SOCK_STREAM, nil, "x"), 0, "", false, `as "x" is not a listening stream socket`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			defer tt.file.Close()
			list, err := Open(Options{Activated: []*os.File{tt.file}})
			if tt.bad != "" {
				if err == nil || !strings.Contains(err.Error(), tt.bad) {
					t.Fatalf("got %v, want %q", err, tt.bad)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			l := list[0]
			if l.Network != tt.network || !strings.HasPrefix(l.Name, tt.listens) || l.TLS != tt.tls {
				t.Errorf("%+v", l)
			}
			if _, _, err := unix.Accept4(l.FD(), unix.SOCK_CLOEXEC); err != unix.EAGAIN {
				t.Errorf("accept waits, or fails with %v", err)
			}
			CloseAll(list)
			if tt.network == ipc.Unix {
				if _, err := os.Stat(path); err != nil {
					t.Errorf("the service manager's file is gone: %v", err)
				}
			}
		})
	}
}
