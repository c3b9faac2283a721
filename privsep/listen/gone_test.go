package listen

import (
	"net"
	"syscall"
	"testing"
	"time"
)

// TestIsGone checks which accepted TCP connections are closed without being
// served. A client that has only stopped sending still waits for its answer.
func TestIsGone(t *testing.T) {
	write := func(c *net.TCPConn) { c.Write([]byte("GET")) }
	reset := func(c *net.TCPConn) { c.SetLinger(0); c.Close() }
	for _, tt := range []struct {
		name   string
		client func(*net.TCPConn)
		want   bool
	}{
		{"open", func(*net.TCPConn) {}, false},
		{"has sent data", write, false},
		{"closed", func(c *net.TCPConn) { c.Close() }, true},
		{"reset", reset, true},
		{"has sent data, then stopped sending", func(c *net.TCPConn) { write(c); c.CloseWrite() }, false},
		{"has sent data, then closed", func(c *net.TCPConn) { write(c); c.Close() }, false},
		{"has sent data, then reset", func(c *net.TCPConn) { write(c); reset(c) }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			client, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			server, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			tt.client(client.(*net.TCPConn))
			raw, err := server.(syscall.Conn).SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			gone := func() (gone bool) {
				raw.Control(func(fd uintptr) { gone = IsGone(int(fd)) })
				return gone
			}
			for end := time.Now().Add(time.Minute); tt.want && !gone() && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			if got := gone(); got != tt.want {
				t.Errorf("gone: %v", got)
			}
		})
	}
}
