package worker

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"schedrestd/ipc/work"
)

// conversations lists valid and invalid inputs from clients.
var conversations = []string{
	"GET /a HTTP/1.1\r\nHost: lab\r\n\r\nGET /b HTTP/1.1\r\nHost: lab\r\n\r\n",
	"POST /a HTTP/1.1\r\nHost: lab\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\nHost: lab\r\n\r\n",
	"POST /a HTTP/1.1\r\nHost: lab\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\nGET /b HTTP/1.1\r\nHost: lab\r\n\r\n",
	"POST /a HTTP/1.1\r\nHost: lab\r\nTransfer-Encoding: chunked\r\n\r\n3;x=\"y\"\r\nabc\r\n0\r\nX: y\r\n\r\nGET /b HTTP/1.1\r\nHost: lab\r\n\r\n",
	"POST /a HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\nGET /b HTTP/1.0\r\n\r\n",
	"POST /a HTTP/1.1\r\nHost: lab\r\nTransfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
	"POST /a HTTP/1.1\r\nHost: lab\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
	"GET /a HTTP/1.1\r\nHost: lab\r\nX: y\r\n z\r\nA : b\r\n\r\n", "GET /a HTTP/1.1\nHost: lab\nX: y\rz\n\n", "\r\n\r\nGET /a HTTP/1.1\r\n\r\n",
	"HEAD /a HTTP/1.1\r\nHost: lab\r\n\r\nGET * HTTP/1.2\r\nHost:\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x16\x03\x01", "GET /a", "HTTP/1.1 200 OK\r\n\r\n",
	"POST /a HTTP/1.1\r\nHost: lab\r\nContent-Length: 1\r\nContent-Length: 1\r\nConnection: close\r\n\r\nxGET /b HTTP/1.1\r\n\r\n",
	"POST /a HTTP/1.1\r\nHost: lab\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc", "CONNECT lab:80 HTTP/1.1\r\nHost: lab\r\nUpgrade: h2c\r\n\r\n",
}

// FuzzConversation sends arbitrary input, shuts down the sending side, and
// checks the answers. They must be complete and in order. If an answer
// announces that the connection closes, the connection must close. There must
// be one answer for each call of the handler, plus at most one refusal.
func FuzzConversation(f *testing.F) {
	for _, seed := range conversations {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 16<<10 {
			checkConversation(t, text, false)
		}
	})
}

// TestInetdConversations performs the checks of FuzzConversation, without
// fuzzing, on a server in inetd mode.
func TestInetdConversations(t *testing.T) {
	for _, text := range conversations {
		checkConversation(t, text, true)
	}
}

// checkConversation sends text and checks the answers.
func checkConversation(t *testing.T, text string, inetd bool) {
	t.Helper()
	called := make(chan string, 1000)
	st := newTestServer(t, work.Setup{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called <- r.Method
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Request-Id", "handler")
		fmt.Fprint(w, "answer")
	}))
	answers := conversation(t, st, text, inetd)
	var methods []string
	for range len(called) {
		methods = append(methods, <-called)
	}
	if strings.Contains(answers, "contradict") {
		t.Errorf("http.Server refuses what the lexer accepts: %q", answers)
	}
	statuses := parseAnswers(t, answers, methods)
	if n := len(statuses); n != len(methods) && n != len(methods)+1 {
		t.Errorf("%d answers, %d requests: %q", n, len(methods), answers)
	}
}

// conversation sends text, shuts down the sending side, and returns all
// answers.
func conversation(t *testing.T, st *testServer, text string, inetd bool) string {
	t.Helper()
	var out io.Reader
	if inetd {
		in, stdout := startInetd(t, st)
		go func() { _, _ = io.WriteString(in, text); in.Close() }()
		must(t, stdout.SetReadDeadline(time.Now().Add(time.Minute)))
		out = stdout
	} else {
		c := st.connect()
		go func() { _, _ = io.WriteString(c, text); _ = c.CloseWrite() }()
		must(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
		out = c
	}
	answers, err := io.ReadAll(out)
	if os.IsTimeout(err) {
		t.Fatalf("no end behind %q", answers)
	}
	if _, reset := err.(*net.OpError); err != nil && !reset {
		t.Fatal(err)
	}
	return string(answers)
}

// parseAnswers returns the statuses of the answers in text. It fails the test
// if an answer is malformed.
func parseAnswers(t *testing.T, text string, methods []string) (statuses []int) {
	t.Helper()
	in := bufio.NewReader(strings.NewReader(text))
	for last := false; ; {
		if _, err := in.Peek(1); err != nil {
			return statuses
		}
		if last {
			t.Fatalf("more behind the last answer: %q", text)
		}
		var request *http.Request
		if len(statuses) < len(methods) {
			request = &http.Request{Method: methods[len(statuses)]}
		}
		r, err := http.ReadResponse(in, request)
		if err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		if r.StatusCode == http.StatusContinue {
			continue
		}
		if r.Header.Get("X-Request-Id") == "" {
			t.Errorf("an answer that is not ours in %q", text)
		}
		statuses, last = append(statuses, r.StatusCode), r.Close
	}
}
