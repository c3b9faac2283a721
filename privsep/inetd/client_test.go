package inetd

import (
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestIsTerminal: to ask changes nothing for those who share the file.
func TestIsTerminal(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no terminals: %v", err)
	}
	defer terminal.Close()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	read, write := os.NewFile(uintptr(fds[0]), "standard input"), os.NewFile(uintptr(fds[1]), "pipe")
	defer read.Close()
	defer write.Close()
	if !IsTerminal(terminal) || IsTerminal(read) {
		t.Errorf("a terminal: %t, a pipe: %t", IsTerminal(terminal), IsTerminal(read))
	}
	if flags, err := unix.FcntlInt(uintptr(fds[0]), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
		t.Errorf("flags %o, %v: it was made blocking", flags, err)
	}
}

// TestLeft: who sends no more may still read, and who has gone does neither.
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
	s := &Client{Connection: ipc.Connection{Network: ipc.TCP}, in: int(file.Fd())}
	want := func(what string, ended, gone bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			e, g := s.left()
			if e == ended && g == gone {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %t, %t", what, e, g)
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
