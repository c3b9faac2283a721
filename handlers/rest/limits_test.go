package rest

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestRequestLimits(t *testing.T) {
	tests := []struct {
		name, method, path string
		change             func(*http.Request)
		status             int
		header, want       string
	}{
		{"a long path", "GET", "/sched/v0.0.42/job/" + strings.Repeat("n", maxURI), nil, 414, "", ""},
		{"a long query", "GET", "/sched/v0.0.42/jobs?x=" + strings.Repeat("n", maxURI), nil, 414, "", ""},
		{"a long query for a path that needs no user", "GET", "/healthz?x=" + strings.Repeat("n", maxURI), nil, 414, "", ""},
		{"many parameters", "GET", "/sched/v0.0.42/jobs?" + strings.Repeat("&", maxParams), nil, 414, "", ""},
		{"announced too large", "POST", "/sched/v0.0.42/job/submit", func(r *http.Request) {
			r.Body, r.ContentLength = untouched{}, 50<<20+1
		}, 413, "Connection", "close"},
		{"compressed", "POST", "/sched/v0.0.42/job/submit", func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }, 415, "Accept-Encoding", "identity"},
		{"compressed twice", "POST", "/sched/v0.0.42/job/submit", func(r *http.Request) { r.Header["Content-Encoding"] = []string{"identity", "gzip"} }, 415, "Accept-Encoding", "identity"},
		{"what curl sends", "POST", "/sched/v0.0.42/job/submit", func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }, 415,
			"Accept-Post", "application/json, application/yaml, application/x-yaml, text/yaml"},
		{"two types in a line", "POST", "/sched/v0.0.42/job/submit", func(r *http.Request) { r.Header.Set("Content-Type", "application/json, text/plain") }, 415, "", ""},
		{"two types", "POST", "/sched/v0.0.42/job/submit", func(r *http.Request) { r.Header["Content-Type"] = []string{MediaJSON, MediaYAML} }, 415, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			site := newSite(0)
			r := newRequest(tt.method, tt.path, "")
			if tt.change != nil {
				tt.change(r)
			}
			if _, ok := r.Body.(untouched); ok {
				r.Body = untouched{t}
			}
			w := site.serve(r)
			if w.Code != tt.status || w.Header().Get(tt.header) != tt.want || site.changes > 0 {
				t.Errorf("status %d, %v: %s", w.Code, w.Header(), w.Body)
			}
			envelope(t, w.Body.Bytes())
		})
	}
}

// TestContinue tests clients that send Expect: 100-continue and no body. A
// client with a valid credential must get status 100, which asks for the body.
// Any other client must get its final answer at once.
func TestContinue(t *testing.T) {
	for _, tt := range []struct{ name, credential, want string }{
		{"known", "X-SCHED-USER-TOKEN: " + token + "\r\n", "HTTP/1.1 100 Continue\r\n"},
		{"a stranger", "", "HTTP/1.1 401 Unauthorized\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(newSite(0).server())
			defer server.Close()
			c, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(30 * time.Second)) // timeout of the test
			if _, err := c.Write([]byte("POST /sched/v0.0.42/job/submit HTTP/1.1\r\nHost: gateway\r\nExpect: 100-continue\r\nContent-Length: 22\r\n" + tt.credential + "\r\n")); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || line != tt.want {
				t.Errorf("%q, %v", line, err)
			}
		})
	}
}

// untouched is a body that must not be read.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func (untouched) Close() error { return nil }
