package worker

import (
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"schedrestd/auth"
	"schedrestd/gateway/worker/broker"
	"schedrestd/internal/fdpass/unixconn"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/security/self"
)

// connPair returns both ends of a connection. The worker's end is like a
// connection that the dispatcher passed.
func connPair(t *testing.T, m ipc.Connection, stall time.Duration, done func()) (*conn, net.Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fds[1]), "client")
	client, err := net.FileConn(f)
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	c, err := newConn(fds[0], &m, stall, done)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Conn.Close(); client.Close() })
	return c, client
}

func TestConnCallsDoneOnce(t *testing.T) {
	done := 0
	c, client := connPair(t, ipc.Connection{Network: ipc.Unix}, time.Minute, func() { done++ })
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(client); err != nil || len(b) != 0 {
		t.Errorf("after CloseWrite the client reads %q, %v", b, err)
	}
	if _, err := client.Write([]byte("still there")); err != nil {
		t.Errorf("the other direction is closed too: %v", err)
	}
	if done != 0 {
		t.Error("done was called before Close")
	}
	for range 3 {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if done != 1 {
		t.Errorf("done was called %d times", done)
	}
}

// TestStalledWrite checks that an answer is aborted if the client stops
// reading, so that the client does not keep its slot permanently.
func TestStalledWrite(t *testing.T) {
	c, _ := connPair(t, ipc.Connection{Network: ipc.Unix}, 20*time.Millisecond, func() {})
	if _, err := c.Write(make([]byte, 16<<20)); !os.IsTimeout(err) {
		t.Errorf("got %v, want a timeout", err)
	}
}

func TestPeer(t *testing.T) {
	tests := []struct {
		name string
		m    ipc.Connection
		want auth.Peer
	}{
		{"TCP", ipc.Connection{Network: ipc.TCP, Listener: ":80", Addr: "192.0.2.1:9", UID: ipc.NoID, GID: ipc.NoID},
			auth.Peer{Network: "tcp", Listener: ":80", Addr: "192.0.2.1:9", UID: ipc.NoID, GID: ipc.NoID}},
		{"UNIX", ipc.Connection{Network: ipc.Unix, Listener: "unix:/s", UID: 1000, GID: 100, PID: 7, Verified: true},
			auth.Peer{Network: "unix", Listener: "unix:/s", UID: 1000, GID: 100, PID: 7, Verified: true}},
		{"not checked", ipc.Connection{Network: ipc.Unix, UID: 1000, GID: 0, PID: 7},
			auth.Peer{Network: "unix", UID: 1000, GID: 0, PID: 7}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := connPair(t, tt.m, time.Minute, func() {})
			got, ok := auth.PeerFrom(withPeer(t.Context(), c))
			if diff := cmp.Diff(tt.want, got); diff != "" || !ok {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestQueue(t *testing.T) {
	q := newQueue()
	a, b := net.Pipe()
	defer b.Close()
	go q.put(a)
	if c, err := q.Accept(); err != nil || c != a {
		t.Errorf("got %v, %v", c, err)
	}
	q.Close()
	q.Close()
	if _, err := q.Accept(); err == nil {
		t.Error("a closed queue returns a connection")
	}
	q.put(a) // put must neither block nor leave the connection open
	if _, err := a.Write(nil); err != io.ErrClosedPipe {
		t.Errorf("a connection that arrived too late is left open: %v", err)
	}
}

func TestProveNamesTheDifference(t *testing.T) {
	err := self.VerifyAttributes(&ipc.Attributes{UID: 4711}, 1, 1)
	if err == nil || !strings.Contains(err.Error(), `expected "4711 4711 4711 4711"`) {
		t.Errorf("got %v", err)
	}
}

// TestStartedByHand checks that a worker that schedrestd did not start refuses
// to serve.
func TestStartedByHand(t *testing.T) {
	if _, err := unix.GetsockoptInt(ipc.WorkerFD, unix.SOL_SOCKET, unix.SO_TYPE); err == nil {
		t.Skip("descriptor 3 of the tests is a socket")
	}
	built := false
	if status := Main(func(work.Setup, *Tokens, *broker.Broker) (http.Handler, error) { built = true; return nil, nil }); status != 2 || built {
		t.Errorf("status %d, built %v", status, built)
	}
}

// TestConnOfDescriptors checks that the worker closes descriptors that a local
// client sends. The thread that closes them may block, and must not delay other
// connections.
func TestConnOfDescriptors(t *testing.T) {
	c, client := connPair(t, ipc.Connection{Network: ipc.Unix}, time.Minute, func() {})
	if _, ok := c.Conn.(*unixconn.Conn); !ok {
		t.Errorf("the connection is a %T", c.Conn)
	}
	_, _, err := client.(*net.UnixConn).WriteMsgUnix([]byte("G"), unix.UnixRights(0), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 9)); n != 1 || err != nil {
		t.Error(n, err)
	}
}
