package listen

import (
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
)

// TestInheritedOptions checks that the kernel gives each accepted connection the
// options of its listening socket. The worker relies on it.
func TestInheritedOptions(t *testing.T) {
	list, err := Open(Options{Addresses: []ipc.Listen{{Text: "127.0.0.1:0", Network: ipc.TCP, Addresses: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer CloseAll(list)
	client, err := net.Dial("tcp", list[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	fd, _, err := list[0].Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for _, tt := range []struct {
		name                string
		level, option, want int
	}{
		{"TCP_NODELAY", unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		{"SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{"TCP_KEEPIDLE", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15},
		{"TCP_KEEPINTVL", unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 15},
	} {
		if got, err := unix.GetsockoptInt(fd, tt.level, tt.option); err != nil || got != tt.want {
			t.Errorf("%s: %d, %v", tt.name, got, err)
		}
	}
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
		t.Errorf("the connection can block: flags %#x, %v", flags, err)
	}
}
