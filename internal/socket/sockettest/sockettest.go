// Package sockettest makes directories for the UNIX sockets of tests, and serves
// sockets. The path of a socket has at most socket.MaxPath bytes. The directory
// of t.TempDir contains $TMPDIR and the test's name, and so its path may be too
// long.
package sockettest

import (
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"schedrestd/internal/socket"
)

// room is how many bytes of a socket's path are left for the path below a
// directory of MkdirTemp.
const room = 50

// MkdirTemp does the same as os.MkdirTemp("", pattern), but the directory is in
// /tmp if its path in $TMPDIR would be too long for sockets.
func MkdirTemp(pattern string) (string, error) {
	const random = 10 // digits that os.MkdirTemp adds to the pattern
	parent := os.TempDir()
	if len(filepath.Join(parent, pattern))+random+room > socket.MaxPath {
		parent = "/tmp"
	}
	return os.MkdirTemp(parent, pattern)
}

// Dir does the same as t.TempDir, but the directory's path is short enough for
// sockets.
func Dir(t testing.TB) string {
	t.Helper()
	parent, err := MkdirTemp("sock-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(parent); err != nil {
			t.Error(err)
		}
	})
	dir := filepath.Join(parent, "d") // as with t.TempDir, a test may also change the mode of the directory's parent
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// serveLimit limits the time for a connection, so that a test whose client waits
// for nothing fails and does not hang.
const serveLimit = time.Minute

// Serve listens on a new address until the test ends. It calls act for each
// connection, and closes the connection when act returns. The network is "tcp"
// or "unix".
func Serve(t testing.TB, network string, act func(net.Conn)) (address string) {
	t.Helper()
	address = "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(Dir(t), "s")
	}
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			wait.Go(func() {
				defer nc.Close()
				_ = nc.SetDeadline(time.Now().Add(serveLimit))
				act(nc)
			})
		}
	})
	t.Cleanup(func() { ln.Close(); wait.Wait() })
	return ln.Addr().String()
}
