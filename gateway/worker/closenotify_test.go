package worker

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"syscall"
	"testing"
	"time"

	"schedrestd/ipc/work"
)

// TestDrainOfFullConnections checks a drain with clients of TLS connections that
// read nothing. The end of a TLS stream, for which the kernel has no room, must
// delay neither the drain nor, for long, the end of the connection.
func TestDrainOfFullConnections(t *testing.T) {
	limits := testLimits
	limits.Stall, limits.Idle, limits.Drain = time.Hour, time.Hour, 40*time.Second
	st := newTestServer(t, work.Setup{Limits: limits}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for range 20 { // crypto/tls waits five seconds for each of them
		st.fillIdleTLS()
	}
	closed := make(chan struct{})
	go func() { st.table.Wait(); close(closed) }()
	go st.shutdown()
	select {
	case <-closed:
	case <-time.After(limits.Drain):
		t.Fatal("the connections are not closed")
	}
	<-st.exit
}

// fillIdleTLS opens a TLS connection whose client receives an answer, and then
// reads nothing. It fills the connection until the kernel accepts no more bytes.
func (st *testServer) fillIdleTLS() {
	t := st.t
	t.Helper()
	client := tls.Client(st.connectTLS(0, "http/1.1"), &tls.Config{InsecureSkipVerify: true})
	io.WriteString(client, get+host+"\r\n")
	_, err := http.ReadResponse(bufio.NewReader(client), nil)
	must(t, err)
	raw, err := st.newest.Value().Conn.(syscall.Conn).SyscallConn()
	must(t, err)
	for piece := make([]byte, 64<<10); len(piece) > 0; piece = piece[:len(piece)/2] {
		must(t, raw.Control(func(fd uintptr) {
			for err := error(nil); err == nil; {
				_, err = syscall.Write(int(fd), piece)
			}
		}))
	}
}
