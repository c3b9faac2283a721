package listen

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
)

// TestUnsentIsLimited checks how much the kernel takes of an answer to a client
// that reads nothing, in addition to what the client's own kernel takes.
func TestUnsentIsLimited(t *testing.T) {
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
	ln, err := net.FileListener(list[0].file)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for err == nil {
		_ = c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
		_, err = c.Write(make([]byte, 64<<10))
	}
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			t.Fatal(err)
		}
		if info.Notsent_bytes > 2*maxUnsent {
			t.Errorf("%d bytes are not sent yet", info.Notsent_bytes)
		}
	})
}
