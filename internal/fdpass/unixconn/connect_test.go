package unixconn

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/socket/sockettest"
)

// fullQueue returns the path and the descriptor of a UNIX socket whose queue of
// connections is full.
func fullQueue(t *testing.T) (path string, listener int) {
	t.Helper()
	path = filepath.Join(sockettest.Dir(t), "s")
	newSocket := func() int {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		must(t, err)
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	listener = newSocket()
	must(t, unix.Bind(listener, &unix.SockaddrUnix{Name: path}))
	must(t, unix.Listen(listener, 1))
	for range 100 {
		if unix.Connect(newSocket(), &unix.SockaddrUnix{Name: path}) == unix.EAGAIN {
			return path, listener
		}
	}
	t.Fatal("the queue does not fill")
	return "", 0
}

// TestFullQueue checks that Dial waits until the server accepts a connection,
// and that it stops waiting when its context ends.
func TestFullQueue(t *testing.T) {
	path, listener := fullQueue(t)
	if _, err := (new(net.Dialer)).Dial("unix", path); !errors.Is(err, unix.EAGAIN) {
		t.Fatalf("package net: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Dial(ctx, path); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("after the context has ended: %v", err)
	}
	go func() {
		time.Sleep(20 * time.Millisecond)
		if fd, _, err := unix.Accept(listener); err == nil {
			unix.Close(fd)
		}
	}()
	c, err := Dial(t.Context(), path)
	must(t, err)
	if _, ok := c.(*net.UnixConn); !ok || c.RemoteAddr().String() != path {
		t.Errorf("%T to %s", c, c.RemoteAddr())
	}
	c.Close()
}

// TestDialErrors checks that DialContext returns the same errors as package net.
func TestDialErrors(t *testing.T) {
	for _, address := range []string{filepath.Join(t.TempDir(), "none"), "/dev/null"} {
		_, want := new(net.Dialer).DialContext(t.Context(), "unix", address)
		_, err := DialContext(t.Context(), "unix", address)
		if err == nil || err.Error() != want.Error() {
			t.Errorf("%s: %v, want %v", address, err, want)
		}
	}
}
