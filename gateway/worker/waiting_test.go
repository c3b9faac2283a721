package worker

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAnswerWaiting checks that all clients that wait at the sockets get a
// complete answer, or with TLS a closed connection, and that the sockets still
// listen.
func TestAnswerWaiting(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	secure, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer secure.Close()
	var sockets []*os.File
	for _, s := range []struct {
		net.Listener
		name string
	}{{listener, "schedrestd.socket"}, {secure, "https"}} {
		f, err := s.Listener.(*net.TCPListener).File()
		must(t, err)
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
		must(t, err)
		f.Close()
		socket := os.NewFile(uintptr(fd), s.name)
		defer socket.Close()
		sockets = append(sockets, socket)
	}
	dial := func(l net.Listener, text string) net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		must(t, err)
		t.Cleanup(func() { c.Close() })
		_, err = io.WriteString(c, text)
		must(t, err)
		return c
	}
	var waiting []net.Conn
	for i := range 40 {
		text := ""
		if i%2 == 0 {
			text = fmt.Sprintf("POST /%d HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", i)
		}
		waiting = append(waiting, dial(listener, text))
	}
	handshake := dial(secure, "")
	must(t, AnswerWaiting(sockets))
	for _, c := range waiting {
		text, err := io.ReadAll(c)
		must(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(text)), nil)
		must(t, err)
		var body struct {
			Meta   struct{ Plugin map[string]string }
			Errors []struct {
				Description, Code string
				Retryable         bool
			}
		}
		if err := json.NewDecoder(resp.Body).Decode(&body); err != nil || len(body.Errors) != 1 {
			t.Fatalf("%s: %v", text, err)
		}
		e := body.Errors[0]
		if resp.StatusCode != 503 || !resp.Close || resp.Header.Get("Retry-After") == "" || e.Code != "unavailable" || !e.Retryable || e.Description == "" || body.Meta.Plugin == nil {
			t.Errorf("%s", text)
		}
	}
	if text, err := io.ReadAll(handshake); err != nil || len(text) > 0 {
		t.Errorf("the client with TLS got %q, %v", text, err)
	}
	client := dial(listener, "later")
	accepted, err := listener.Accept()
	must(t, err)
	defer accepted.Close()
	if accepted.RemoteAddr().String() != client.LocalAddr().String() {
		t.Errorf("accepted %s, not the client that came later", accepted.RemoteAddr())
	}
}
