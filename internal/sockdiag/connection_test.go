package sockdiag

import (
	"net"
	"net/netip"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/socket/sockettest"
)

// TestIsGone checks which connections the kernel reports as gone while the
// server still has the descriptor open.
func TestIsGone(t *testing.T) {
	reset := func(c net.Conn) {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		c.Close()
	}
	half := func(c net.Conn) { _ = c.(interface{ CloseWrite() error }).CloseWrite() }
	whole := func(c net.Conn) { c.Close() }
	nothing := func(net.Conn) {}
	tests := []struct {
		name, network, addr string
		client, server      func(net.Conn)
		want                bool
	}{
		{"open", "tcp", "127.0.0.1:0", nothing, nothing, false},
		{"the client has stopped sending", "tcp", "127.0.0.1:0", half, nothing, false},
		{"the client has closed it", "tcp", "127.0.0.1:0", whole, nothing, false},
		{"reset", "tcp", "127.0.0.1:0", reset, nothing, true},
		{"both sides have stopped sending", "tcp", "127.0.0.1:0", half, half, true},
		{"the server has closed it", "tcp", "127.0.0.1:0", nothing, whole, true},
		{"IPv6, open", "tcp", "[::1]:0", nothing, nothing, false},
		{"IPv6, reset", "tcp", "[::1]:0", reset, nothing, true},
		{"all addresses, open", "tcp", ":0", nothing, nothing, false},
		{"all addresses, reset", "tcp", ":0", reset, nothing, true},
		{"UNIX, open", "unix", filepath.Join(sockettest.Dir(t), "a"), nothing, nothing, false},
		{"UNIX, the client has stopped sending", "unix", filepath.Join(sockettest.Dir(t), "b"), half, nothing, false},
		{"UNIX, the client has closed it", "unix", filepath.Join(sockettest.Dir(t), "c"), whole, nothing, true},
		{"UNIX, the server has closed it", "unix", filepath.Join(sockettest.Dir(t), "d"), nothing, whole, true},
	}
	fd, err := Open(unix.NETLINK_SOCK_DIAG)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	socket := NewSocket(fd)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ln, err := net.Listen(tt.network, tt.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			client, err := net.Dial(tt.network, ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			server, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			identify := func(fd int) (Connection, error) {
				remote := server.RemoteAddr().(*net.TCPAddr).AddrPort()
				return IdentifyTCP(fd, netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port()))
			}
			if tt.network == "unix" {
				identify = IdentifyUnix
			}
			raw, err := server.(syscall.Conn).SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			var c Connection
			if controlErr := raw.Control(func(fd uintptr) { c, err = identify(int(fd)) }); controlErr != nil || err != nil {
				t.Fatal(controlErr, err)
			}
			if gone, err := socket.IsGone(c); gone || err != nil {
				t.Fatalf("before: gone %v, %v", gone, err)
			}
			tt.client(client)
			tt.server(server)
			for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
				gone, err := socket.IsGone(c)
				if err != nil {
					t.Fatal(err)
				}
				if gone == tt.want {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("gone %v, want %v", gone, tt.want)
				}
			}
		})
	}
}

// TestIsGoneUnknown checks that a query fails without a netlink socket.
func TestIsGoneUnknown(t *testing.T) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if gone, err := NewSocket(fd).IsGone(Connection{inode: 1}); gone || err == nil {
		t.Errorf("gone %v, %v", gone, err)
	}
}
