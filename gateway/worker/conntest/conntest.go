// Package conntest makes connections and requests for the tests of the worker.
package conntest

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/auth"
	"schedrestd/ipc"
)

// Pair returns the descriptor of the worker's end of a connection, as the
// dispatcher passes it, and the client's end. The caller closes the descriptor.
func Pair(t testing.TB) (fd int, client net.Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fds[1]), "client")
	defer f.Close()
	if client, err = net.FileConn(f); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return fds[0], client
}

// RequestFrom returns a request from addr with one X-Forwarded-For header for
// each string in forwarded. The address "uid 13" is that of a local user.
func RequestFrom(addr string, forwarded ...string) *http.Request {
	r := httptest.NewRequest("GET", "/x", nil)
	for _, text := range forwarded {
		r.Header.Add("X-Forwarded-For", text)
	}
	p := auth.Peer{Network: "tcp", Addr: addr, UID: ipc.NoID}
	if uid, ok := strings.CutPrefix(addr, "uid "); ok {
		n, _ := strconv.Atoi(uid)
		p.Network, p.Addr, p.UID = "unix", "", uint32(n)
	}
	return r.WithContext(auth.WithPeer(r.Context(), p))
}
