package handlers

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"schedrestd/handlers/rest"
	"schedrestd/model"
)

// TestUnfinishedBody tests requests that announce a body and do not send all of
// it. The gateway must answer and close the connection. If it waited for the
// rest of the body, a client that sends only one byte could keep the connection
// open forever.
func TestUnfinishedBody(t *testing.T) {
	const stall = 50 * time.Millisecond
	alice := "X-SCHED-USER-TOKEN: " + token + "\r\n"
	tests := []struct {
		name, line, headers string
		want                string
	}{
		{"no credential", "POST /sched/v0.0.42/job/submit", "", "401"},
		{"no such path", "POST /nowhere", "", "404"},
		{"parameters that stop", "GET /sched/v0.0.42/ping", alice, "408"},
		{"a body that stops", "POST /sched/v0.0.42/job/submit", alice, "408"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := config(&fake{pings: []model.Ping{{Hostname: "c1", Responding: true}}})
			cfg.ReadBody = stall
			server := httptest.NewServer(New(cfg))
			defer server.Close()
			c, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			request := tt.line + " HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\n" + tt.headers + "Content-Length: 1000\r\n\r\n{"
			if _, err := c.Write([]byte(request)); err != nil {
				t.Fatal(err)
			}
			_ = c.SetReadDeadline(time.Now().Add(30 * time.Second)) // the test's timeout, far longer than the timeout for the body
			r, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatalf("no answer: %v", err)
			}
			defer r.Body.Close()
			if !strings.HasPrefix(r.Status, tt.want) || !r.Close {
				t.Errorf("status %s, closes %v; want %s and the end of the connection", r.Status, r.Close, tt.want)
			}
		})
	}
}

// TestConnectionThatEnds checks that a connection stays open after the whole
// body was read, unless the caller of the handler has already set Connection:
// close.
func TestConnectionThatEnds(t *testing.T) {
	for _, ends := range []bool{false, true} {
		h := New(config(demo()))
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if ends {
				w.Header().Set("Connection", "close")
			}
			h.ServeHTTP(w, r)
		}))
		defer server.Close()
		r, err := http.NewRequest("POST", server.URL+"/sched/v0.0.42/job/submit", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-SCHED-USER-TOKEN", token)
		r.Header.Set("Content-Type", rest.MediaJSON)
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusUnauthorized || answer.Close != ends {
			t.Errorf("status %s, closes %v; want %v", answer.Status, answer.Close, ends)
		}
	}
}
