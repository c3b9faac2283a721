package unixconn

import (
	"context"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Connect connects the socket fd, which must not block, to the UNIX socket at
// path. If the kernel's queue of connections that the server has not accepted
// is full, Connect tries again until ctx ends, but for at most queueLimit. The
// kernel reports a full queue as EAGAIN. Another client can fill the queue, so
// EAGAIN does not mean that the server is unavailable.
func Connect(ctx context.Context, fd int, path string) error {
	deadline := time.Now().Add(queueLimit)
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		err := unix.Connect(fd, &unix.SockaddrUnix{Name: path})
		for err == unix.EINTR {
			err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
		}
		if err != unix.EAGAIN || time.Now().After(deadline) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

const (
	queueLimit = 10 * time.Second
	minPause   = time.Millisecond
	maxPause   = 10 * time.Millisecond
)

// Dial connects to a UNIX socket as Connect does.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, dialError(path, "socket", err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	if err := Connect(ctx, fd, path); err != nil {
		return nil, dialError(path, "connect", err)
	}
	return net.FileConn(f)
}

// dialError returns an error with the text of package net.
func dialError(path, call string, err error) error {
	return &net.OpError{Op: "dial", Net: "unix", Addr: &net.UnixAddr{Name: path, Net: "unix"}, Err: os.NewSyscallError(call, err)}
}

// DialContext does the same as the method of net.Dialer, except that it waits
// if the queue of a UNIX socket is full.
func DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if network == "unix" {
		return Dial(ctx, address)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}
