package serveruid

import (
	"io"
	"net"
	"os"
	"testing"

	"schedrestd/internal/socket/sockettest"
)

// TestOf checks that the kernel names this process's user as the user of a server
// that this process runs.
func TestOf(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		nc, err := net.Dial(network, sockettest.Serve(t, network, func(nc net.Conn) { io.Copy(io.Discard, nc) }))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if uid, known, err := Of(nc); uid != uint32(os.Geteuid()) || !known || err != nil {
			t.Errorf("%s: uid %d, known %t, %v", network, uid, known, err)
		}
	}
	pipe, _ := net.Pipe()
	if _, _, err := Of(pipe); err == nil {
		t.Error("a connection without a socket: no error")
	}
}
