package listen

import (
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
)

// accept returns a connection of a new listener, whose client has sent a byte and
// reads nothing.
func accept(t *testing.T) *os.File {
	t.Helper()
	list, err := Open(Options{Addresses: []ipc.Listen{{Text: "127.0.0.1:0", Network: ipc.TCP, Addresses: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { CloseAll(list) })
	client, err := net.Dial("tcp", list[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if _, err := client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	fd, _, err := list[0].Accept()
	if err != nil {
		t.Fatal(err)
	}
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
		t.Errorf("the connection can block: flags %#x, %v", flags, err)
	}
	c := os.NewFile(uintptr(fd), "connection")
	t.Cleanup(func() { c.Close() })
	return c
}

// control calls f with the descriptor of c.
func control(t *testing.T, c *os.File, f func(fd int)) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { f(int(fd)) })
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestInheritedOptions checks that the kernel gives each accepted connection the
// options of its listening socket. The worker relies on it.
func TestInheritedOptions(t *testing.T) {
	c := accept(t)
	for _, tt := range []struct {
		name                string
		level, option, want int
	}{
		{"TCP_NODELAY", unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		{"SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{"TCP_KEEPIDLE", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15},
		{"TCP_KEEPINTVL", unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 15},
	} {
		control(t, c, func(fd int) {
			if got, err := unix.GetsockoptInt(fd, tt.level, tt.option); err != nil || got != tt.want {
				t.Errorf("%s: %d, %v", tt.name, got, err)
			}
		})
	}
}

// TestUnsentIsLimited checks how much the kernel takes of an answer to a client
// that reads nothing, in addition to what the client's own kernel takes.
func TestUnsentIsLimited(t *testing.T) {
	c := accept(t)
	for err := error(nil); err == nil; {
		_ = c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
		_, err = c.Write(make([]byte, 64<<10))
	}
	control(t, c, func(fd int) {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			t.Error(err)
		} else if info.Notsent_bytes > 2*maxUnsent {
			t.Errorf("%d bytes are not sent yet", info.Notsent_bytes)
		}
	})
}
