package privsep

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// envelope is the answer of a gateway that refuses, as a client reads it.
type envelope struct {
	Meta     map[string]any `json:"meta"`
	Errors   []problem      `json:"errors"`
	Warnings []any          `json:"warnings"`
}

type problem struct {
	Description string `json:"description"`
	Number      *int   `json:"error_number"`
	Error       string `json:"error"`
	Source      string `json:"source"`
	Code        string `json:"code"`
	Retryable   bool   `json:"retryable"`
}

// TestCannedAnswers: what the parent says is an answer like any other's, the client reads it
// whole although its request stays unread, and a client that went away harms nothing.
func TestCannedAnswers(t *testing.T) {
	tests := []struct {
		status    int
		text      []byte
		code      string
		retryable bool
		after     string
	}{
		{statusForbidden, answers[statusForbidden], "denied", false, ""},
		{statusUnavailable, answers[statusUnavailable], "unavailable", true, "5"},
		{statusTooMany, tooMany(4100 * time.Millisecond), "too_many", true, "5"},
		{statusTooMany, tooMany(0), "too_many", true, "1"}, // its time is over by now
		{statusTooMany, tooMany(1000 * time.Hour), "too_many", true, "65535"},
	}
	for _, tt := range tests {
		client, fd := connected(t)
		io.WriteString(client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello")
		refuseWith(fd, tt.text)
		in := bufio.NewReader(client)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.ContentLength != int64(len(body)) {
			t.Errorf("%d: %d bytes of %d, %v", tt.status, len(body), resp.ContentLength, err)
		}
		if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
			t.Errorf("%d: then %q, %v", tt.status, rest, err)
		}
		if resp.StatusCode != tt.status || resp.Status != string(tt.text[9:9+len(resp.Status)]) || !resp.Close ||
			resp.Header.Get("Content-Type") != "application/json" || resp.Header.Get("Retry-After") != tt.after {
			t.Errorf("%d: %s %v", tt.status, resp.Status, resp.Header)
		}
		var e envelope
		if err := json.Unmarshal(body, &e); err != nil || e.Meta == nil || e.Warnings == nil || len(e.Errors) != 1 {
			t.Fatalf("%d: %s: %v", tt.status, body, err)
		}
		p := e.Errors[0]
		if p.Code != tt.code || p.Retryable != tt.retryable || p.Number == nil || p.Description == "" || p.Error != http.StatusText(tt.status) {
			t.Errorf("%d: %+v", tt.status, p)
		}
	}
	client, fd := connected(t)
	client.Close()
	refuseWith(fd, answers[statusUnavailable]) // no signal, no panic
}

// TestCannedAnswersHoldLittle: however many are refused, few stay open for a moment.
func TestCannedAnswersHoldLittle(t *testing.T) {
	var clients []net.Conn
	for range 3 * mostLingering {
		client, fd := connected(t)
		refuseWith(fd, answers[statusUnavailable])
		clients = append(clients, client)
	}
	if n := lingering.Load(); n > mostLingering {
		t.Errorf("%d connections linger", n)
	}
	for _, c := range clients {
		if got, err := io.ReadAll(c); err != nil || !slices.Equal(got, answers[statusUnavailable]) {
			t.Fatalf("read %q, %v", got, err)
		}
	}
}

// connected is a TCP connection: the client's end, and the accepted one as the parent has it.
func connected(t *testing.T) (client net.Conn, fd int) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err = net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	server, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	f, err := server.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err = unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return client, fd
}
