package worker

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/limit"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// refusedConn returns the client's end of a refused connection. The client has
// sent text before the server refuses it.
func refusedConn(t *testing.T, s *server, m ipc.Connection, text string) net.Conn {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	f := os.NewFile(uintptr(fds[0]), "client")
	client, err := net.FileConn(f)
	must(t, err)
	f.Close()
	t.Cleanup(func() { client.Close() })
	_, err = io.WriteString(client, text)
	must(t, err)
	m.Network = ipc.Unix
	s.refuseConn(fds[1], &m)
	return client
}

// TestRefuseConn checks that the client of a refused connection gets a complete
// answer, although its request is not read. For an unknown status, there must
// be no answer.
func TestRefuseConn(t *testing.T) {
	for _, tt := range []struct {
		m         ipc.Connection
		code      string
		retryable bool
		after     string
	}{
		{ipc.Connection{RefuseStatus: 403}, "denied", false, ""},
		{ipc.Connection{RefuseStatus: 503, RetryAfter: 5}, "unavailable", true, "5"},
		{ipc.Connection{RefuseStatus: 429, RetryAfter: 65535}, "too_many", true, "65535"},
		{ipc.Connection{RefuseStatus: 200}, "", false, ""},
	} {
		client := refusedConn(t, newTestServer(t, work.Setup{}, nil).server, tt.m, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello")
		text, err := io.ReadAll(client)
		if err != nil {
			t.Errorf("%d: %v", tt.m.RefuseStatus, err)
		}
		if tt.code == "" {
			if len(text) > 0 {
				t.Errorf("%d: %s", tt.m.RefuseStatus, text)
			}
			continue
		}
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(text)), nil)
		must(t, err)
		body, err := io.ReadAll(resp.Body)
		must(t, err)
		if resp.StatusCode != int(tt.m.RefuseStatus) || !resp.Close || resp.ContentLength != int64(len(body)) ||
			resp.Header.Get("Content-Type") != "application/json" || resp.Header.Get("Retry-After") != tt.after {
			t.Errorf("%d: %s %v", tt.m.RefuseStatus, resp.Status, resp.Header)
		}
		var e struct {
			Meta     map[string]any
			Warnings []any
			Errors   []struct {
				Description, Error, Code string
				Number                   *int `json:"error_number"`
				Retryable                bool
			}
		}
		if err := json.Unmarshal(body, &e); err != nil || e.Meta["client"] == nil || e.Warnings == nil || len(e.Errors) != 1 {
			t.Fatalf("%d: %s: %v", tt.m.RefuseStatus, body, err)
		}
		p := e.Errors[0]
		if p.Code != tt.code || p.Retryable != tt.retryable || p.Number == nil || p.Description == "" || p.Error != http.StatusText(int(tt.m.RefuseStatus)) {
			t.Errorf("%d: %+v", tt.m.RefuseStatus, p)
		}
	}
}

// TestRefuseConnWaits checks that a client that sends nothing gets its answer,
// but not so early that Go's client would take it for a fault of the server.
func TestRefuseConnWaits(t *testing.T) {
	begin := time.Now()
	client := refusedConn(t, newTestServer(t, work.Setup{}, nil).server, ipc.Connection{RefuseStatus: 429, RetryAfter: 1}, "")
	var first [1]byte
	_, err := io.ReadFull(client, first[:])
	must(t, err)
	if after := time.Since(begin); after < refusedLinger/2 {
		t.Errorf("answered after %s, before a request came", after)
	}
}

// TestRefuseConnLimit checks that even if many connections are refused, only a
// few of them are open concurrently, and each only for a moment. A drain must
// not wait for them.
func TestRefuseConnLimit(t *testing.T) {
	s := newTestServer(t, work.Setup{}, nil).server
	var clients []net.Conn
	for range 3 * limit.RefusedConns.Total {
		clients = append(clients, refusedConn(t, s, ipc.Connection{RefuseStatus: 503}, ""))
	}
	if n, _ := s.refused.Counts(); n > limit.RefusedConns.Total {
		t.Errorf("%d connections are open", n)
	}
	s.table.Wait()
	answered := 0
	for _, c := range clients {
		text, err := io.ReadAll(c)
		must(t, err)
		if strings.HasPrefix(string(text), "HTTP/1.1 503 ") {
			answered++
		}
	}
	if answered < limit.RefusedConns.Total {
		t.Errorf("%d of %d are answered", answered, len(clients))
	}
	for end := time.Now().Add(time.Minute); s.refused.Held(struct{}{}) != 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("they stay open")
		}
	}
}
