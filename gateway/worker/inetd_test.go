package worker

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/worker/clientconn"
	"schedrestd/gateway/worker/stdio"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// startInetd makes st serve a pair of pipes, as if inetd had started it. It
// returns the file to which the test writes requests, and the file from which
// the test reads the answers.
func startInetd(t *testing.T, st *testServer) (in, out *os.File) {
	t.Helper()
	fromIn, in, err := os.Pipe()
	must(t, err)
	out, toOut, err := os.Pipe()
	must(t, err)
	t.Cleanup(func() { in.Close(); out.Close() })
	var fds [2]int
	for i, f := range []*os.File{fromIn, toOut} {
		fds[i], err = unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		must(t, err)
		f.Close()
	}
	if !st.inetd {
		st.inetd, st.http1.Interactive = true, true
	}
	c := clientconn.Wrap(stdio.New(fds[0], fds[1]), &ipc.Connection{ID: nextID.Add(1), Network: ipc.Stdio}, testLimits.Stall)
	added := st.table.AddSilent(c.ID)
	c.Closed = added.Closed
	go st.newHTTP1Conn(c, c, added).Serve()
	return in, out
}

// TestInetdBodies checks that each request gets its own complete body, however
// the body is framed. No part of a body may be taken for a request.
func TestInetdBodies(t *testing.T) {
	big := strings.Repeat("0123456789", 20_000)
	hidden := "GET /hidden HTTP/1.1\r\n\r\n"
	for _, tt := range []struct {
		name, send string
		want       []string
	}{
		{"none", "GET /a HTTP/1.1\n\nGET /b HTTP/1.1\n\n", []string{"/a:", "/b:"}},
		{"length", "POST /a HTTP/1.1\nContent-Length: 3\n\nabcGET /b HTTP/1.1\n\n", []string{"/a:abc", "/b:"}},
		{"a body like a request", fmt.Sprintf("POST /a HTTP/1.1\nContent-Length: %d\n\n%sGET /b HTTP/1.1\n\n", len(hidden), hidden), []string{"/a:" + hidden, "/b:"}},
		{"big", fmt.Sprintf("POST /a HTTP/1.1\nContent-Length: %d\n\n%sGET /b HTTP/1.1\n\n", len(big), big), []string{"/a:" + big, "/b:"}},
		{"chunks", "POST /a HTTP/1.1\nTransfer-Encoding: chunked\n\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX: y\r\n\r\nGET /b HTTP/1.1\n\n", []string{"/a:abcde", "/b:"}},
		{"big chunk", fmt.Sprintf("POST /a HTTP/1.1\nTransfer-Encoding: chunked\n\n%x\r\n%s\r\n0\r\n\r\nGET /b HTTP/1.1\n\n", len(big), big), []string{"/a:" + big, "/b:"}},
		{"URL with a host", "GET http://there/a HTTP/1.1\n\n", []string{"/a:"}},
		{"a Host of its own", "GET /a HTTP/1.1\nhOsT: there\n\n", []string{"/a:"}},
		{"Host in a value", "GET /a HTTP/1.1\nX: Host: there\n\n", []string{"/a:"}},
		{"blank lines between", "\r\n\nGET /a HTTP/1.1\n\n\n\r\n\nGET /b HTTP/1.1\n\n\n\n", []string{"/a:", "/b:"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var got []string
			st := newTestServer(t, work.Setup{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				mu.Lock()
				defer mu.Unlock()
				got = append(got, r.URL.Path+":"+string(body))
				if err != nil || r.Context().Err() != nil {
					t.Errorf("%s: %v, %v", r.URL.Path, err, r.Context().Err())
				}
			}))
			in, out := startInetd(t, st)
			go func() { io.WriteString(in, tt.send); in.Close() }()
			answers, err := io.ReadAll(out)
			must(t, err)
			if n := strings.Count(string(answers), "HTTP/1.1 200"); n != len(tt.want) {
				t.Errorf("%d answers in %q", n, answers)
			}
			mu.Lock()
			defer mu.Unlock()
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("got %.300q, want %.300q", got, tt.want)
			}
		})
	}
}

// TestInetdAnswers checks how answers to different requests are framed. An
// aborted answer must be recognizable as incomplete.
func TestInetdAnswers(t *testing.T) {
	st := newTestServer(t, work.Setup{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/known":
			w.Header().Set("Content-Length", "5")
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		case "/last":
			w.Header().Set("Connection", "close")
		case "/broken":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "half")
			panic(http.ErrAbortHandler)
		case "/unread":
			w.WriteHeader(http.StatusConflict)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err == nil && len(body) == 0 {
			body = []byte("hello")
		}
		w.Write(body)
	}))
	get := func(path string) string { return "GET " + path + " HTTP/1.1\n\n" }
	for _, tt := range []struct{ name, send, want string }{
		{"a length that the handler announces", get("/known"), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"},
		{"a length that it does not", get("/a"), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"},
		{"HEAD", "HEAD /known HTTP/1.1\n\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"},
		{"204", get("/none"), "HTTP/1.1 204 No Content\r\n\r\n"},
		{"the last by the handler", get("/last") + get("/a"), "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"},
		{"the last by the client", "GET /a HTTP/1.1\nConnection: close\n\n" + get("/a"), "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"},
		{"HTTP/1.0", "GET /a HTTP/1.0\n\n" + get("/a"), "HTTP/1.0 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"},
		{"an expectation", "POST /a HTTP/1.1\nExpect: 100-continue\nContent-Length: 2\n\nok", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
		{"an expectation whose body is not read", "POST /unread HTTP/1.1\nExpect: 100-continue\nContent-Length: 2\n\nok" + get("/none"), "HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"},
		{"broken off", get("/broken") + get("/a"), "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"},
	} {
		in, out := startInetd(t, st)
		go func() { io.WriteString(in, tt.send); in.Close() }()
		answers, err := io.ReadAll(out)
		must(t, err)
		if got := regexp.MustCompile("Date: [^\r]*\r\n").ReplaceAllString(string(answers), ""); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestEndOfInputWaits checks that the end of the input does not cancel a
// request in progress.
func TestEndOfInputWaits(t *testing.T) {
	entered, release := make(chan bool), make(chan bool)
	st := newTestServer(t, work.Setup{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- true
		<-release
		select {
		case <-r.Context().Done():
		case <-time.After(200 * time.Millisecond): // enough time for a cancellation to happen
		}
		fmt.Fprint(w, r.Context().Err())
	}))
	in, out := startInetd(t, st)
	io.WriteString(in, "GET /a HTTP/1.1\n\n")
	<-entered
	in.Close()
	release <- true
	answer, err := io.ReadAll(out)
	must(t, err)
	if !strings.HasSuffix(string(answer), "<nil>") {
		t.Errorf("got %q", answer)
	}
}

// TestInetdDrains checks that if there is no request, a drain ends immediately,
// even if the input is still open.
func TestInetdDrains(t *testing.T) {
	st := newTestServer(t, work.Setup{}, nil)
	_, out := startInetd(t, st)
	go st.shutdown()
	if got, err := io.ReadAll(out); err != nil || len(got) > 0 {
		t.Errorf("got %q, %v", got, err)
	}
	if status := <-st.exit; status != 0 {
		t.Errorf("exit status %d", status)
	}
}
