package unixconn

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/fdpass"
	"schedrestd/internal/socket/sockettest"
)

// maxCalls is the limit of concurrent calls in package fdpass.
const maxCalls = 16

// lingering returns a TCP socket. When its last descriptor is closed, close(2)
// sleeps for an hour, unless a signal interrupts it.
func lingering(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	must(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 4096))
	must(t, unix.Connect(fd, &unix.SockaddrInet4{Port: l.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}))
	peer, err := l.Accept()
	must(t, err)
	t.Cleanup(func() { peer.Close() })
	must(t, unix.SetNonblock(fd, true))
	for err = nil; err == nil; {
		_, err = unix.Write(fd, make([]byte, 1<<16))
	}
	must(t, unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 3600}))
	return fd
}

// pair returns a connection and the descriptor of its peer.
func pair(t *testing.T) (*Conn, int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(fds[1]) })
	f := os.NewFile(uintptr(fds[0]), "")
	defer f.Close()
	nc, err := net.FileConn(f)
	must(t, err)
	c, err := Wrap(nc.(*net.UnixConn))
	must(t, err)
	return c, fds[1]
}

// send sends a lingering socket to the other end of the connection, and closes
// its own descriptor of that socket. After that, only the unread message refers
// to the socket.
func send(t *testing.T, to int) {
	t.Helper()
	fd := lingering(t)
	must(t, unix.Sendmsg(to, []byte("G"), unix.UnixRights(fd), nil, 0))
	unix.Close(fd)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mustNotBlock fails the test if f does not return within 20 seconds. This
// happens if a close sleeps.
func mustNotBlock(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("it sleeps")
	}
}

// TestLingering reads from and closes many connections concurrently, after each
// peer has sent a lingering socket. Neither Read nor Close may block.
func TestLingering(t *testing.T) {
	var conns []*Conn
	for range 2 * maxCalls {
		read, stranger := pair(t)
		send(t, stranger)
		closed, stranger := pair(t)
		send(t, stranger)
		conns = append(conns, read, closed)
	}
	mustNotBlock(t, func() {
		var wg sync.WaitGroup
		for i, c := range conns {
			wg.Go(func() {
				if i%2 == 0 {
					if n, err := c.Read(make([]byte, 9)); n != 1 || err != nil {
						t.Error(n, err)
					}
				}
				c.Close()
			})
		}
		wg.Wait()
	})
}

// TestCloseWhileWritten calls Close while a Write is blocked. Close must close
// the unread descriptors itself, and not leave them to the Write, which returns
// later.
func TestCloseWhileWritten(t *testing.T) {
	c, stranger := pair(t)
	send(t, stranger)
	mustNotBlock(t, func() {
		failed := make(chan error)
		go func() { _, err := c.Write(make([]byte, 4<<20)); failed <- err }()
		time.Sleep(50 * time.Millisecond)
		c.Close()
		if err := <-failed; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

// TestCloseSoon checks that Close closes a descriptor, and that Close returns
// immediately even if close(2) sleeps.
func TestCloseSoon(t *testing.T) {
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	last, err := unix.Dup(int(w.Fd()))
	must(t, err)
	w.Close()
	mustNotBlock(t, func() {
		for range 3 * maxCalls {
			fdpass.Close(lingering(t))
		}
		fdpass.Close(last)
		if _, err := r.Read(make([]byte, 1)); err != io.EOF {
			t.Error(err)
		}
	})
}

// TestConn checks that a Conn behaves like a connection of package net, and
// that Wrap recognizes a connection on which no descriptor can arrive.
func TestConn(t *testing.T) {
	t.Run("guarded", func(t *testing.T) {
		c, peer := pair(t)
		if c.rejectsFDs {
			t.Error("the connection counts as safe")
		}
		testConn(t, c, peer)
	})
	t.Run("safe", func(t *testing.T) {
		old, peer := pair(t)
		must(t, old.raw.Control(func(fd uintptr) { fdpass.Refuse(int(fd)) }))
		c, err := Wrap(old.UnixConn)
		must(t, err)
		if c.rejectsFDs != hasPassRights() {
			t.Errorf("safe: %t", c.rejectsFDs)
		}
		testConn(t, c, peer)
	})
}

func testConn(t *testing.T, c *Conn, peer int) {
	must(t, c.SetReadDeadline(time.Now().Add(-time.Second)))
	_, err := c.Read(make([]byte, 1))
	if e, ok := errors.AsType[*net.OpError](err); !ok || !e.Timeout() || e.Op != "read" || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("late: %v", err)
	}
	must(t, c.SetReadDeadline(time.Time{}))
	if n, err := c.Read(nil); n != 0 || err != nil {
		t.Error(n, err)
	}
	must(t, unix.Shutdown(peer, unix.SHUT_WR))
	if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Error(n, err)
	}
	must(t, c.Close())
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if err := c.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
}

// TestRefuse checks that a client that connects to a socket after Refuse can't
// send a descriptor. Wrap must still protect connections that were made before
// Refuse.
func TestRefuse(t *testing.T) {
	if !hasPassRights() {
		t.Skip("this kernel does not refuse descriptors")
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: sockettest.Dir(t) + "/s", Net: "unix"})
	must(t, err)
	defer l.Close()
	raw, err := l.SyscallConn()
	must(t, err)
	for _, afterRefuse := range []bool{false, true} {
		c, err := net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr))
		must(t, err)
		defer c.Close()
		must(t, raw.Control(func(fd uintptr) { fdpass.Refuse(int(fd)) }))
		_, _, err = c.WriteMsgUnix([]byte("G"), unix.UnixRights(0), nil)
		if (err != nil) != afterRefuse || afterRefuse && !errors.Is(err, unix.EPERM) {
			t.Errorf("late %t: the sender gets %v", afterRefuse, err)
		}
		accepted, err := l.AcceptUnix()
		must(t, err)
		defer accepted.Close()
		if g, err := Wrap(accepted); err != nil || g.rejectsFDs != afterRefuse {
			t.Errorf("late %t: safe %t, %v", afterRefuse, g.rejectsFDs, err)
		}
	}
}

// hasPassRights reports whether the kernel has the option SO_PASSRIGHTS.
func hasPassRights() bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 0) == nil
}
