package http1server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"schedrestd/internal/http1"
)

// watcher is a Client that counts what it learns.
type watcher struct{ begun, answered, refused, malformed int }

func (w *watcher) Begun() { w.begun++ }

func (w *watcher) Answered() { w.answered++ }

func (w *watcher) Refused(malformed bool) {
	if w.refused++; malformed {
		w.malformed++
	}
}

func (*watcher) ReadFailed(error) {}

func (*watcher) HasUnread() bool { return false }

func newServer(h http.HandlerFunc) *Server {
	return &Server{
		Handler: h,
		Refuse: func(w http.ResponseWriter, _ *http.Request, err error) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, err)
		},
		HeadTimeout: time.Minute,
		IdleTimeout: time.Minute,
		MaxHead:     16 << 10,
		MaxBody:     1 << 20,
	}
}

// A script is a connection whose input is known. It keeps the output.
type script struct {
	net.Conn
	in  io.Reader
	out bytes.Buffer
}

func (s *script) Read(p []byte) (int, error) { return s.in.Read(p) }

func (s *script) Write(p []byte) (int, error) { return s.out.Write(p) }

func (*script) Close() error { return nil }

func (*script) LocalAddr() net.Addr { return nil }

func (*script) SetDeadline(time.Time) error { return nil }

func (*script) CloseWrite() error { return nil }

func (*script) RemoteAddr() net.Addr { return &net.UnixAddr{} }

func (*script) SetReadDeadline(time.Time) error { return nil }

func (*script) SetWriteDeadline(time.Time) error { return nil }

// converse serves a connection whose input is text, in pieces of the given
// length, and returns the output.
func converse(s *Server, text string, piece int) string {
	c := &script{in: &pieces{text: text, size: piece}}
	s.NewConn(context.Background(), c, new(watcher)).Serve()
	return c.out.String()
}

// pieces is a reader that returns at most size bytes at once.
type pieces struct {
	text string
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.text == "" {
		return 0, io.EOF
	}
	n := copy(b, p.text[:min(p.size, len(p.text))])
	p.text = p.text[n:]
	return n, nil
}

const get, host = "GET / HTTP/1.1\r\n", "Host: h\r\n"

var dates = regexp.MustCompile("Date: [^\r]*\r\n")

// TestAnswers checks how answers are framed.
func TestAnswers(t *testing.T) {
	long := strings.Repeat("x", 3000)
	for _, tt := range []struct {
		name, send string
		handler    http.HandlerFunc
		want       string
	}{
		{"nothing written", get + host + "\r\n", func(http.ResponseWriter, *http.Request) {}, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
		{"short", get + host + "\r\n", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "a"); io.WriteString(w, "b") },
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"},
		{"long", get + host + "\r\n", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, long); io.WriteString(w, "b") },
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nbb8\r\n" + long + "\r\n1\r\nb\r\n0\r\n\r\n"},
		{"flushed", get + host + "\r\n", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "a")
			w.(http.Flusher).Flush()
		}, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"},
		{"long, HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, long) },
			"HTTP/1.0 200 OK\r\nConnection: close\r\n\r\n" + long},
		{"announced", get + host + "\r\n", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "3000")
			io.WriteString(w, long)
		}, "HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n" + long},
		{"more than announced", get + host + "\r\n", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1")
			io.WriteString(w, "a")
			if _, err := io.WriteString(w, "b"); err != http.ErrContentLength {
				t.Errorf("got %v", err)
			}
		}, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"},
		{"less than announced", get + host + "\r\n" + get + host + "\r\n", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "2")
			io.WriteString(w, "a")
		}, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na"},
		{"HEAD", "HEAD / HTTP/1.1\r\n" + host + "\r\n", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, long) },
			"HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n"},
		{"304", get + host + "\r\n", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"x"`)
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusNotModified)
			if _, err := io.WriteString(w, "a"); err != http.ErrBodyNotAllowed {
				t.Errorf("got %v", err)
			}
		}, "HTTP/1.1 304 Not Modified\r\nEtag: \"x\"\r\n\r\n"},
		{"fields after the header", get + host + "\r\n", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			w.Header().Set("X", "late")
		}, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"},
		{"a field with a line end", get + host + "\r\n", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", "a\r\nY: b") },
			"HTTP/1.1 200 OK\r\nX: a  Y: b\r\nContent-Length: 0\r\n\r\n"},
		{"aborted before the header", get + host + "\r\n", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "a")
			panic(http.ErrAbortHandler)
		}, ""},
		{"aborted", get + host + "\r\n", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, long)
			panic(http.ErrAbortHandler)
		}, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nbb8\r\n" + long + "\r\n"},
		{"an expected body that is not read", "POST / HTTP/1.1\r\n" + host + "Expect: 100-continue\r\nContent-Length: 1\r\n\r\nx" + get + host + "\r\n",
			func(http.ResponseWriter, *http.Request) {}, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"},
		{"a body that is not read", "POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\n\r\nx" + get + host + "Connection: close\r\n\r\n",
			func(http.ResponseWriter, *http.Request) {}, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"},
		{"a long body that is not read", "POST / HTTP/1.1\r\n" + host + "Content-Length: 300000\r\n\r\n" + strings.Repeat("x", 300000) + get + host + "\r\n",
			func(http.ResponseWriter, *http.Request) {}, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"},
		{"a body that is closed", "POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\n\r\nx", func(_ http.ResponseWriter, r *http.Request) {
			r.Body.Close()
			if _, err := r.Body.Read(make([]byte, 1)); err != http.ErrBodyReadAfterClose {
				t.Errorf("got %v", err)
			}
		}, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
	} {
		for _, piece := range []int{1, 7, 1 << 20} {
			if got := dates.ReplaceAllString(converse(newServer(tt.handler), tt.send, piece), ""); got != tt.want {
				t.Errorf("%s, in pieces of %d: got %.200q, want %.200q", tt.name, piece, got, tt.want)
			}
		}
	}
}

// TestClient checks what the Client of a connection learns.
func TestClient(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     watcher
	}{
		{"nothing", "", watcher{}},
		{"an empty line", "\r\n", watcher{}},
		{"a part of a head", "GE", watcher{begun: 1, refused: 1}},
		{"two requests", get + host + "\r\n" + get + host + "\r\n", watcher{begun: 1, answered: 2}},
		{"the last request", get + host + "Connection: close\r\n\r\n", watcher{begun: 1}},
		{"a request and garbage", get + host + "\r\n\x16\x03\x01\r\n\r\n", watcher{begun: 1, answered: 1, refused: 1, malformed: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got watcher
			s := newServer(func(http.ResponseWriter, *http.Request) {})
			if s.NewConn(t.Context(), &script{in: strings.NewReader(tt.in)}, &got).Serve(); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestPanic checks that a handler that panics ends only its connection.
func TestPanic(t *testing.T) {
	s := newServer(func(http.ResponseWriter, *http.Request) { panic("a test") })
	if got := converse(s, get+host+"\r\n"+get+host+"\r\n", 100); got != "" {
		t.Errorf("got %q", got)
	}
}

// TestCancel checks that Cancel cancels the request that is being answered, and
// no other.
func TestCancel(t *testing.T) {
	var c *Conn
	s := newServer(func(w http.ResponseWriter, r *http.Request) {
		if err := r.Context().Err(); err != nil {
			t.Errorf("before Cancel: %v", err)
		}
		if r.Method == http.MethodGet {
			c.Cancel()
			<-r.Context().Done()
		}
	})
	in := &script{in: &pieces{text: get + host + "\r\nHEAD / HTTP/1.1\r\n" + host + "\r\n", size: 100}}
	c = s.NewConn(t.Context(), in, new(watcher))
	c.Serve()
	c.Cancel() // without a request
	if n := strings.Count(in.out.String(), "HTTP/1.1 200"); n != 2 {
		t.Errorf("%d answers", n)
	}
}

// TestLongBuffer checks that a connection does not keep the memory for a long
// head.
func TestLongBuffer(t *testing.T) {
	c := newServer(nil).NewConn(t.Context(), &script{}, new(watcher))
	for len(c.in) < 10<<10 {
		c.in = c.in[:len(c.in)+len(c.room())]
	}
	c.in = c.in[len(c.in):]
	if c.room(); cap(c.in) != bufferSize {
		t.Errorf("the buffer has %d bytes", cap(c.in))
	}
}

// heard is what a handler has read, and what the client got.
type heard struct {
	requests []string
	answers  []string
	trailers int // number of requests with a trailer
}

// recordRequests returns a handler that records each request.
func recordRequests(to *heard) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		to.requests = append(to.requests, fmt.Sprintf("%s %s %s %q %v %q %t %v", r.Method, r.RequestURI, r.Proto, r.Host, r.Header, body, err != nil, r.ContentLength))
		if r.Trailer != nil {
			to.trailers++
		}
		status := http.StatusOK
		if err != nil {
			status = http.StatusBadRequest
			w.Header().Set("Connection", "close")
		}
		w.WriteHeader(status)
		io.WriteString(w, strings.Repeat("answer", len(body)))
	}
}

// statuses returns the status and the body of each complete answer in text.
func statuses(t *testing.T, text string, methods []string) (list []string) {
	in := bufio.NewReader(strings.NewReader(text))
	for i := 0; ; {
		if _, err := in.Peek(1); err != nil {
			return list
		}
		r := &http.Request{Method: http.MethodGet}
		if i < len(methods) {
			r.Method = methods[i]
		}
		resp, err := http.ReadResponse(in, r)
		if err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		if resp.StatusCode != http.StatusContinue {
			list = append(list, fmt.Sprint(resp.StatusCode, " ", string(body)))
			i++
		}
	}
}

// FuzzAgainstNetHTTP sends the same input to a Server and to the server of
// net/http. A Server refuses more requests, and closes HTTP/1.0 connections. Up
// to that point, the handlers must get the same requests, and the clients the
// same answers.
func FuzzAgainstNetHTTP(f *testing.F) {
	for _, text := range []string{
		get + host + "\r\n" + get + host + "\r\n",
		"POST / HTTP/1.1\r\n" + host + "Content-Length: 3\r\n\r\nabc" + get + host + "\r\n",
		"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n3;x=\"y\"\r\nabc\r\n0\r\nX: y\r\n\r\n" + get + host + "\r\n",
		"POST / HTTP/1.1\r\n" + host + "Expect: 100-continue\r\nContent-Length: 1\r\n\r\nx" + get + host + "\r\n",
		"HEAD /a?b HTTP/1.1\r\n" + host + "\r\nOPTIONS * HTTP/1.1\r\n" + host + "\r\nCONNECT h:80 HTTP/1.1\r\n" + host + "\r\n",
		"GET http://h/ HTTP/1.1\nHost: g\nConnection: close\n\n" + get + host + "\r\n", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + get + host + "\r\n",
		"\r\n\r\nPOST / HTTP/1.2\r\n" + host + "Content-Length: 5\r\n\r\nabc", get + "Host:\r\nX: \xff\r\nx: y\r\nCookie: a\r\nPragma: no-cache\r\n\r\n",
		"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n5000\r\n" + strings.Repeat("a", 0x5000) + "\r\n0\r\n\r\n" + get + host + "\r\n",
	} {
		f.Add(text, uint16(1))
		f.Add(text, uint16(30000))
	}
	f.Fuzz(func(t *testing.T, text string, piece uint16) {
		if len(text) > 64<<10 {
			return
		}
		var ours, theirs heard
		out := converse(newServer(recordRequests(&ours)), text, int(piece)+1)
		var methods []string
		for _, r := range ours.requests {
			method, _, _ := strings.Cut(r, " ")
			methods = append(methods, method)
		}
		ours.answers = statuses(t, out, methods)
		if n := len(ours.answers) - len(ours.requests); n != 0 && n != 1 {
			t.Fatalf("%d answers to %d requests: %q", len(ours.answers), len(ours.requests), out)
		}
		if len(ours.requests) == 0 {
			return
		}
		if ours.trailers > 0 {
			t.Fatalf("a trailer of %q reaches the handler", text)
		}
		theirs.answers = statuses(t, askNetHTTP(recordRequests(&theirs), withoutEmptyLines(text)), methods)
		for i, r := range ours.requests {
			if i >= len(theirs.requests) || theirs.requests[i] != r && !strings.Contains(ours.answers[i], "400 ") {
				t.Fatalf("request %d of %q: the handler gets\n%s, from net/http\n%q", i, text, r, theirs.requests)
			}
			if i >= len(theirs.answers) || theirs.answers[i] != ours.answers[i] && !strings.Contains(ours.answers[i], "400 ") {
				t.Fatalf("answer %d to %q: the client gets\n%q, from net/http\n%q", i, text, ours.answers, theirs.answers)
			}
			if strings.Contains(strings.ToLower(r), "close") { // net/http also closes the connection if "close" is only a part of a value
				return
			}
		}
	})
}

// withoutEmptyLines removes the empty lines between requests. net/http accepts
// none.
func withoutEmptyLines(text string) (out string) {
	l := http1.Lexer{MaxHead: 16 << 10, MaxBody: 1 << 20}
	for {
		text = text[l.Skip([]byte(text)):]
		n, err := l.Head([]byte(text))
		if n > 0 && err == nil {
			k, bodyErr := l.Body([]byte(text[n:]))
			n, err = n+k, bodyErr
		}
		if err != nil || !l.Done() {
			return out + text
		}
		out, text = out+text[:n], text[n:]
		l.Next()
	}
}

// askNetHTTP sends text to a server of net/http, and returns the output.
func askNetHTTP(h http.Handler, text string) string {
	c := &script{in: &pieces{text: text, size: len(text)}}
	ended := make(chan struct{})
	s := &http.Server{Handler: h, ErrorLog: nil, DisableGeneralOptionsHandler: true, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(ended)
		}
	}}
	go s.Serve(&one{conn: c})
	<-ended
	return c.out.String()
}

// one is a listener with one connection.
type one struct {
	net.Listener
	conn net.Conn
}

func (l *one) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	return nil, net.ErrClosed
}

func (*one) Close() error { return nil }

func (*one) Addr() net.Addr { return nil }
