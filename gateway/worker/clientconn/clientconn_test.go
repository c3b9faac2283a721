package clientconn

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"schedrestd/auth"
	"schedrestd/gateway/worker/conntest"
	"schedrestd/gateway/worker/stdio"
	"schedrestd/internal/fdpass/unixconn"
	"schedrestd/ipc"
)

// connPair returns both ends of a connection. The worker's end is like a
// connection that the dispatcher passed.
func connPair(t *testing.T, m ipc.Connection, stall time.Duration) (*Conn, net.Conn) {
	t.Helper()
	fd, client := conntest.Pair(t)
	c, err := New(fd, &m, stall)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Conn.Close() })
	return c, client
}

func TestConnCallsClosedOnce(t *testing.T) {
	done := 0
	c, client := connPair(t, ipc.Connection{Network: ipc.Unix}, time.Minute)
	c.Closed = func() { done++ }
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
		t.Error("Closed was called before Close")
	}
	for range 3 {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if done != 1 {
		t.Errorf("Closed was called %d times", done)
	}
}

// TestStalledWrite checks that an answer is aborted if the client stops
// reading, so that the client does not keep its slot permanently.
func TestStalledWrite(t *testing.T) {
	c, _ := connPair(t, ipc.Connection{Network: ipc.Unix}, 20*time.Millisecond)
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
			c, _ := connPair(t, tt.m, time.Minute)
			if diff := cmp.Diff(tt.want, c.Peer); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestShortenedWrite checks that shorten reduces the time that a Write may wait
// for the client. This applies to a Write in progress and to later ones.
func TestShortenedWrite(t *testing.T) {
	c, _ := connPair(t, ipc.Connection{Network: ipc.Unix}, time.Hour)
	c.shortStall = 20 * time.Millisecond
	ended := make(chan error)
	go func() {
		_, err := c.Write(make([]byte, 16<<20))
		ended <- err
		_, err = c.Write(make([]byte, 16<<20))
		ended <- err
	}()
	for !c.IsWriting() {
		time.Sleep(time.Millisecond)
	}
	c.Shorten()
	for range 2 {
		if err := <-ended; !os.IsTimeout(err) {
			t.Errorf("got %v, want a timeout", err)
		}
	}
	c.Restore()
	if c.pieceTimeout() != time.Hour {
		t.Error("the deadline stays short")
	}
}

// TestWriteDeadline checks that a deadline limits all later Writes, until it is
// removed.
func TestWriteDeadline(t *testing.T) {
	c, _ := connPair(t, ipc.Connection{Network: ipc.Unix}, time.Hour)
	for _, remove := range []func(){c.Restore, func() { c.SetWriteDeadline(time.Time{}) }} {
		c.SetWriteDeadline(time.Now())
		if _, err := c.Write([]byte("x")); !os.IsTimeout(err) {
			t.Errorf("after the deadline: got %v, want a timeout", err)
		}
		remove()
		if _, err := c.Write([]byte("x")); err != nil {
			t.Errorf("without the deadline: %v", err)
		}
	}
	c.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := c.Write(make([]byte, 16<<20)); !os.IsTimeout(err) {
		t.Errorf("got %v, want a timeout", err)
	}
}

// TestConnOfDescriptors checks that the worker closes descriptors that a local
// client sends. The thread that closes them may block, and must not delay other
// connections.
func TestConnOfDescriptors(t *testing.T) {
	c, client := connPair(t, ipc.Connection{Network: ipc.Unix}, time.Minute)
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

// TestHasHalfClosed checks that HasHalfClosed returns true if a client has shut
// down its sending side, but not if standard input has ended.
func TestHasHalfClosed(t *testing.T) {
	c, client := connPair(t, ipc.Connection{Network: ipc.Unix}, time.Minute)
	if _, err := io.WriteString(client, "unread"); err != nil {
		t.Fatal(err)
	}
	if c.HasHalfClosed() {
		t.Error("a client that may send has left")
	}
	if err := client.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if !c.HasHalfClosed() {
		t.Error("a client that has shut down sending has not left")
	}

	in, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	writer.Close()
	c = Wrap(stdio.New(int(in.Fd()), -1), &ipc.Connection{Network: ipc.Stdio}, time.Minute)
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read standard input: %v", err)
	}
	if c.HasHalfClosed() {
		t.Error("a client has left whose input has ended")
	}
}
