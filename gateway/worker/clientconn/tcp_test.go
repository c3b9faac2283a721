package clientconn

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
)

// tcpPair returns both ends of a TCP connection. The worker's end is like a
// connection that the dispatcher passed.
func tcpPair(t *testing.T) (*Conn, *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	f, err := accepted.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err := unix.Dup(int(f.Fd())) // blocking
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(fd, &ipc.Connection{Network: ipc.TCP, Addr: client.LocalAddr().String(), Listener: l.Addr().String()}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Conn.Close() })
	return c, client.(*net.TCPConn)
}

// TestTCP checks that a TCP connection behaves like one of package net, on which
// crypto/tls and net/http rely.
func TestTCP(t *testing.T) {
	c, client := tcpPair(t)
	if got, want := c.LocalAddr().String()+" "+c.RemoteAddr().String(), client.RemoteAddr().String()+" "+client.LocalAddr().String(); got != want {
		t.Errorf("addresses %s, want %s", got, want)
	}
	if _, err := io.WriteString(c, "answer"); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(client); string(text) != "answer" || err != nil {
		t.Errorf("the client has read %q, %v", text, err)
	}
	fails := func(what string, err, want error, timeout bool) {
		t.Helper()
		netErr, ok := errors.AsType[*net.OpError](err)
		if !ok || !errors.Is(err, want) || netErr.Timeout() != timeout {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := io.WriteString(c, "more")
	fails("write after CloseWrite", err, unix.EPIPE, false)
	if err := c.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	_, err = c.Read(make([]byte, 1))
	fails("read after the deadline", err, os.ErrDeadlineExceeded, true)
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	client.Close()
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read after the client has closed the connection: %v", err)
	}
	c.Close()
	_, err = c.Read(make([]byte, 1))
	fails("read after Close", err, net.ErrClosed, false)
}

// TestAddressOfReset checks that a connection still has its client's address when
// the client has reset it.
func TestAddressOfReset(t *testing.T) {
	c, client := tcpPair(t)
	addr := client.LocalAddr().String()
	_ = client.SetLinger(0)
	client.Close()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Fatalf("the connection was not reset: %v", err)
	}
	if got := c.RemoteAddr().String(); got != addr {
		t.Errorf("address %s, want %s", got, addr)
	}
}
