package dispatch

import (
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/internal/sockdiag"
	"schedrestd/ipc"
)

// TestClient checks that the uid of a client on loopback can be looked up with
// a netlink socket.
func TestClient(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	file, err := far.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	diag, err := sockdiag.Open(unix.NETLINK_SOCK_DIAG)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(diag)
	notNetlink, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(notNetlink)
	loopback := ipc.Connection{Network: ipc.TCP, Addr: far.RemoteAddr().String(), UID: ipc.NoID}
	self := uint32(os.Getuid())
	for _, tt := range []struct {
		name string
		m    ipc.Arrival
		diag int
		want uint32
	}{
		{"loopback", ipc.Arrival{Connection: loopback}, diag, self},
		{"again", ipc.Arrival{Connection: loopback}, diag, self},
		{"another network namespace", ipc.Arrival{Connection: loopback, OtherNetns: true}, diag, ipc.NoID},
		{"no netlink", ipc.Arrival{Connection: loopback}, notNetlink, ipc.NoID},
		{"another machine", ipc.Arrival{Connection: ipc.Connection{Network: ipc.TCP, Addr: "192.0.2.1:1", UID: ipc.NoID}}, diag, ipc.NoID},
		{"a UNIX socket", ipc.Arrival{Connection: ipc.Connection{Network: ipc.Unix, UID: 31001}}, diag, 31001},
	} {
		if got := identify(&tt.m, int(file.Fd()), sockdiag.NewSocket(tt.diag)); got.uid != tt.want || got.left {
			t.Errorf("%s: uid %d, want %d", tt.name, got.uid, tt.want)
		}
	}
	near.Close()
	if got := identify(&ipc.Arrival{Connection: loopback}, int(file.Fd()), sockdiag.NewSocket(diag)); got.uid != ipc.NoID || !got.left {
		t.Errorf("a client that has closed its socket: uid %d, left: %t", got.uid, got.left)
	}
}

// TestClientReset checks that a client on loopback that has reset its connection
// counts as one that has left. A worker can still read what it has sent.
func TestClientReset(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	file, err := far.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fd := int(file.Fd())
	diag, err := sockdiag.Open(unix.NETLINK_SOCK_DIAG)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(diag)
	const sent = "GET / HTTP/1.1\r\n\r\n"
	if _, err := near.Write([]byte(sent)); err != nil {
		t.Fatal(err)
	}
	if err := near.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	near.Close()
	m := &ipc.Arrival{Connection: ipc.Connection{Network: ipc.TCP, Addr: far.RemoteAddr().String(), UID: ipc.NoID}}
	if got := identify(m, fd, sockdiag.NewSocket(diag)); got.uid != ipc.NoID || !got.left {
		t.Errorf("uid %d, left: %t", got.uid, got.left)
	}
	b := make([]byte, 100)
	if n, _ := unix.Read(fd, b); string(b[:max(0, n)]) != sent {
		t.Errorf("the server can read %q", b[:max(0, n)])
	}
}
