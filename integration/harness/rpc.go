package harness

import (
	"net"
	"sync"
	"testing"
	"time"

	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// PlayDaemon plays a daemon on a port of 127.0.0.1, which it returns. It calls
// serve for each request, with its connection, which is closed when serve
// returns. Several calls can run at the same time. The test's end waits for all
// of them.
func PlayDaemon(t *testing.T, serve func(nc net.Conn, request message.Frame)) (port int) {
	t.Helper()
	return serveConns(t, func(nc net.Conn) {
		nc.SetDeadline(time.Now().Add(10 * time.Minute))
		text, err := wire.Read(nc, 1<<20)
		if err != nil {
			return
		}
		if request, err := message.ParseFrame(text); err == nil {
			serve(nc, request)
		}
	})
}

// serveConns accepts connections on a port of 127.0.0.1, which it returns. It
// calls serve for each connection, and closes the connection when serve returns.
// The test's end waits for all calls.
func serveConns(t *testing.T, serve func(net.Conn)) (port int) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	Must(t, err)
	serveListener(t, l, serve)
	return l.Addr().(*net.TCPAddr).Port
}

// serveListener does the same with the connections of l, and closes l.
func serveListener(t *testing.T, l net.Listener, serve func(net.Conn)) {
	t.Helper()
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer nc.Close()
				serve(nc)
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
}
