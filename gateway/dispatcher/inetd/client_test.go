package inetd

import (
	"net"
	"testing"
	"time"

	"schedrestd/ipc"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestLeft checks that a client that has only stopped sending is not reported
// as closed.
func TestLeft(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	accepted, err := l.Accept()
	must(t, err)
	defer accepted.Close()
	file, err := accepted.(*net.TCPConn).File()
	must(t, err)
	defer file.Close()
	s := &Client{Connection: ipc.Connection{Network: ipc.TCP}, In: int(file.Fd())}
	want := func(step string, inputEnded, closed bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			e, g := s.pollState()
			if e == inputEnded && g == closed {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %t, %t", step, e, g)
			}
		}
	}
	want("there", false, false)
	must(t, client.(*net.TCPConn).CloseWrite())
	want("has sent all", true, false)
	must(t, client.(*net.TCPConn).SetLinger(0))
	client.Close()
	want("gone", true, true)
	s.Network = ipc.Stdio
	want("at a pipe", false, false)
}
