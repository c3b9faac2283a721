package gateway

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
	"schedrestd/internal/socket/sockettest"
)

// logSocket creates a socket that takes the place of journald's or syslogd's,
// and returns its datagrams and its path. Every user may connect to the socket. It is read
// at once, as the kernel keeps few datagrams.
func logSocket(t *testing.T) (<-chan []byte, string) {
	t.Helper()
	dir, err := sockettest.MkdirTemp("log-")
	harness.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	harness.Must(t, os.Chmod(dir, 0o755))
	path := filepath.Join(dir, "socket")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	harness.Must(t, err)
	t.Cleanup(func() { c.Close() })
	harness.Must(t, os.Chmod(path, 0o666))
	datagrams := make(chan []byte, 10_000)
	go func() {
		for b := make([]byte, 64<<10); ; {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			datagrams <- bytes.Clone(b[:n])
		}
	}()
	return datagrams, path
}

// await returns the first datagram that contains text.
func await(t *testing.T, datagrams <-chan []byte, text string) []byte {
	t.Helper()
	for timeout := time.After(time.Minute); ; {
		select {
		case b := <-datagrams:
			if bytes.Contains(b, []byte(text)) {
				return b
			}
		case <-timeout:
			t.Fatalf("no datagram with %s", text)
		}
	}
}

// TestLogJSON checks that each line of the log is a JSON object, and that the
// line about a request contains the id that the proxy sent.
func TestLogJSON(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t, harness.WithOptions(nil, "SCHEDRESTD_LOG=json", "SCHEDRESTD_TRUSTED_PROXIES=127.0.0.1"))
	a := l.Request("GET", "/sched/"+harness.Version+"/ping", "", "X-Request-Id: from-the-proxy")
	if id := a.Header.Get("X-Request-Id"); id != "from-the-proxy" {
		t.Errorf("the answer has the id %q", id)
	}
	var request map[string]any
	harness.Eventually(t, "the line about the request", func() bool {
		lines := strings.SplitAfter(l.Logged(), "\n")
		for _, line := range lines[:len(lines)-1] {
			var fields map[string]any
			if err := json.Unmarshal([]byte(line), &fields); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if fields["msg"] == "request" && fields["id"] == "from-the-proxy" {
				request = fields
			}
		}
		return request != nil
	})
	if request["status"] != 200. || request["worker"] == nil || request["id_from"] != "proxy" || request["line"] != nil {
		t.Errorf("the request's fields: %v", request)
	}
}

// TestLogSockets checks that the line about a request reaches syslog and
// journald. The line for journald must have the request's id as a separate
// field.
func TestLogSockets(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"journald", "syslog"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			datagrams, path := logSocket(t)
			l := harness.NewLab(t, harness.WithOptions(nil, "SCHEDRESTD_LOG="+format+":"+path))
			id := l.Request("GET", "/sched/"+harness.Version+"/ping", "").Header.Get("X-Request-Id")
			got := await(t, datagrams, id)
			if format == "syslog" {
				if !bytes.HasPrefix(got, []byte("<30>1 ")) || !bytes.Contains(got, []byte(" - schedrestd ")) {
					t.Errorf("%q", got)
				}
				return
			}
			field := append([]byte("SCHEDRESTD_REQUEST_ID\n"), binary.LittleEndian.AppendUint64(nil, uint64(len(id)))...)
			if !bytes.Contains(got, append(field, id+"\n"...)) {
				t.Errorf("%q", got)
			}
		})
	}
}
