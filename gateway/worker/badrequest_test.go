package worker

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/worker/clientconn"
	"schedrestd/gateway/worker/conns"
	"schedrestd/gateway/worker/http1server"
	"schedrestd/gateway/worker/keys"
	"schedrestd/internal/http1"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// testLimits has short timeouts. In these tests, input arrives immediately.
var testLimits = work.Limits{ReadHeader: 300 * time.Millisecond, ReadBody: time.Minute, Idle: time.Minute, Stall: time.Minute,
	Call: time.Minute, Accounting: time.Minute, Connect: time.Minute, Drain: time.Minute, Header: 8 << 10, Body: 1 << 20, Answers: 1 << 20}

// A testServer is a plain HTTP server. Its default handler records the paths of
// requests, and answers with the usual JSON envelope.
type testServer struct {
	*server
	t      *testing.T
	served *sync.Map // paths of the served requests
	newest weak.Pointer[clientconn.Conn]
}

func newTestServer(t *testing.T, setup work.Setup, h http.Handler) *testServer {
	t.Helper()
	st := &testServer{t: t, served: new(sync.Map)}
	if h == nil {
		h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			st.served.Store(r.URL.Path, true)
			_, err := io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-Request-Id", "handler")
			if err != nil {
				w.WriteHeader(http.StatusBadRequest)
			}
			io.WriteString(w, `{"meta":{"x":1},"errors":[{"code":"handler"}],"warnings":[]}`)
		})
	}
	if setup.Limits == (work.Limits{}) {
		setup.Limits = testLimits
	}
	setup.Names, setup.Cluster = work.NamesSched, "tiny"
	k := keys.New()
	handler, err := NewHandler(setup, k, nil)
	must(t, err)
	st.server = newServer(nil, &setup, testHandler{handler, h}, k, nil)
	st.report = func(ipc.Message) error { return nil }
	if setup.Limits.ReadHeader == testLimits.ReadHeader {
		st.handshakeLimit = time.Minute // a handshake takes longer than reading input that has arrived
	}
	go st.http2.Run()
	t.Cleanup(func() { st.table.Close(); st.http2.Close(); draining.Store(false) })
	return st
}

// A testHandler serves requests with serve.
type testHandler struct {
	Handler
	serve http.Handler
}

func (h testHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.serve.ServeHTTP(w, r) }

// connect returns the client's end of a TCP connection. The server treats the
// other end like a connection from the dispatcher.
func (st *testServer) connect() *net.TCPConn {
	st.t.Helper()
	client, c := st.pair()
	go st.newHTTP1Conn(c, c, st.add(c)).Serve()
	return client
}

// connectTLS returns the client's end of a TCP connection. At the other end,
// the server performs a TLS handshake in which it accepts the given protocols.
// The number of the connection is id, unless id is 0.
func (st *testServer) connectTLS(id uint64, protocols ...string) *net.TCPConn {
	st.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(st.t, err)
	leaf, _ := selfSigned(st.t, key)
	client, c := st.pair()
	if id != 0 {
		c.ID = id
	}
	added := st.add(c)
	added.Attach(c, c, nil)
	config := &tls.Config{NextProtos: protocols, Certificates: []tls.Certificate{{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}}}
	go st.handshake(c, added, tls.Server(c, config))
	return client
}

// add adds a connection to the table, until it is closed.
func (st *testServer) add(raw *clientconn.Conn) *conns.Conn {
	c := st.table.Add(raw.ID)
	raw.Closed = c.Closed
	return c
}

// pair returns a new TCP connection: the client's end, and the server's end as
// a conn.
func (st *testServer) pair() (*net.TCPConn, *clientconn.Conn) {
	st.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(st.t, err)
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	must(st.t, err)
	st.t.Cleanup(func() { client.Close() })
	accepted, err := ln.Accept()
	must(st.t, err)
	f, err := accepted.(*net.TCPConn).File()
	must(st.t, err)
	accepted.Close()
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	must(st.t, err)
	m := &ipc.Connection{ID: nextID.Add(1), Network: ipc.TCP, Addr: client.LocalAddr().String()}
	c, err := clientconn.New(fd, m, st.limits.Stall)
	must(st.t, err)
	st.newest = weak.Make(c)
	return client.(*net.TCPConn), c
}

// nextID is the number of the last connection. The tests also use lower numbers.
var nextID = func() *atomic.Uint64 { n := new(atomic.Uint64); n.Store(1 << 20); return n }()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// readAnswers reads from a connection until it ends, and returns all answers.
func readAnswers(t *testing.T, c net.Conn) (list []*http.Response) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(time.Minute))
	text, err := io.ReadAll(c)
	if err != nil {
		t.Errorf("after %q: %v", text, err)
	}
	in := bufio.NewReader(bytes.NewReader(text))
	for {
		if _, err := in.Peek(1); err == io.EOF {
			return list
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("not an answer: %v in %q", err, text)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("half an answer: %v in %q", err, text)
		}
		resp.Body = io.NopCloser(bytes.NewReader(body))
		list = append(list, resp)
	}
}

const get, host = "GET /ok HTTP/1.1\r\n", "Host: h\r\n"

// TestAbuses checks that, whatever the client sends, each request gets one
// answer with the JSON envelope, or the connection closes without an answer.
// Part of a request must never be taken for another request.
func TestAbuses(t *testing.T) {
	long := strings.Repeat("a", 16<<10)
	tests := []struct {
		name string
		send string
		want []int // expected statuses; none if the connection just ends
	}{
		{"plain", get + host + "\r\n", []int{200}},
		{"HTTP/1.0", "GET /ok HTTP/1.0\r\n\r\n", []int{200}},
		{"two requests", get + host + "\r\n" + get + host + "\r\n", []int{200, 200}},
		{"LF", "GET /ok HTTP/1.1\nHost: h\n\n", []int{200}},
		{"nothing", "", nil},
		{"an empty line", "\r\n", nil},
		{"empty line first", "\r\n" + get + host + "\r\n", []int{200}},
		{"empty lines first", "\n\r\n\n\r\n" + get + host + "\r\n", []int{200}},
		{"too many empty lines first", "\n\r\n\n\r\n\n" + get + host + "\r\n", []int{400}},
		{"a bare CR first", "\r" + get + host + "\r\n", []int{400}},
		{"an empty line, and a space", "\r\n " + get + host + "\r\n", []int{400}},
		{"an empty line between", get + host + "\r\n\r\n" + get + host + "\r\n", []int{200, 400}},
		{"spaces first", " " + get + host + "\r\n", []int{400}},
		{"no Host", get + "\r\n", []int{400}},
		{"two Hosts", get + host + "Host: other\r\n\r\n", []int{400}},
		{"same Host twice", get + host + host + "\r\n", []int{400}},
		{"bad Host", get + "Host: a b\r\n\r\n", []int{400}},
		{"Host with a path", get + "Host: a/b\r\n\r\n", []int{400}},
		{"empty Host", get + "Host:\r\n\r\n", []int{200}},
		{"space before the colon", get + "Host : h\r\n\r\n", []int{400}},
		{"space before a name", get + host + " X: y\r\n\r\n", []int{400}},
		{"no colon", get + host + "Nonsense\r\n\r\n", []int{400}},
		{"no name", get + host + ": value\r\n\r\n", []int{400}},
		{"bare CR in a value", get + host + "X: a\rb\r\n\r\n", []int{400}},
		{"bare CR for line ends", "GET /ok HTTP/1.1\rHost: h\r\r", []int{400}},
		{"folded header", get + host + "X: a\r\n b\r\n\r\n", []int{400}},
		{"NUL in a value", get + host + "X: a\x00b\r\n\r\n", []int{400}},
		{"NUL in a name", get + host + "X\x00: b\r\n\r\n", []int{400}},
		{"NUL in the path", "GET /\x00 HTTP/1.1\r\n" + host + "\r\n", []int{400}},
		{"DEL in a value", get + host + "X: a\x7fb\r\n\r\n", []int{400}},
		{"UTF-8 in a name", get + host + "Ü: b\r\n\r\n", []int{400}},
		{"lower case method", "get /ok HTTP/1.1\r\n" + host + "\r\n", []int{200}},
		{"bad method", "G(T /ok HTTP/1.1\r\n" + host + "\r\n", []int{400}},
		{"huge method", long + " /ok HTTP/1.1\r\n" + host + "\r\n", []int{414}},
		{"huge path", "GET /" + long + " HTTP/1.1\r\n" + host + "\r\n", []int{414}},
		{"huge header", get + host + "X: " + long + "\r\n\r\n", []int{431}},
		{"many headers", get + host + strings.Repeat("X: y\r\n", 4<<10) + "\r\n", []int{431}},
		{"no version", "GET /ok\r\n" + host + "\r\n", []int{400}},
		{"two spaces", "GET  /ok HTTP/1.1\r\n" + host + "\r\n", []int{400}},
		{"four parts", "GET /ok now HTTP/1.1\r\n" + host + "\r\n", []int{400}},
		{"HTTP/1.2", "GET /ok HTTP/1.2\r\n" + host + "\r\n", []int{200}},
		{"HTTP/2.0", "GET /ok HTTP/2.0\r\n" + host + "\r\n", []int{505}},
		{"HTTP/0.9", "GET /ok HTTP/0.9\r\n" + host + "\r\n", []int{505}},
		{"HTTP/x", "GET /ok HTTP/x\r\n" + host + "\r\n", []int{400}},
		{"HTTP/2 in clear", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", []int{505}},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", []int{400}},
		{"SSH", "SSH-2.0-OpenSSH_9.9\r\n", []int{400}},
		{"a body that looks like a request", get + host + "Content-Length: 0\r\n\r\nrubbish\r\n\r\n", []int{200, 400}},
		{"two lengths", "POST /ok HTTP/1.1\r\n" + host + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", []int{400}},
		{"same length twice", "POST /ok HTTP/1.1\r\n" + host + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", []int{200}},
		{"negative length", "POST /ok HTTP/1.1\r\n" + host + "Content-Length: -3\r\n\r\nabc", []int{400}},
		{"signed length", "POST /ok HTTP/1.1\r\n" + host + "Content-Length: +3\r\n\r\nabc", []int{400}},
		{"hexadecimal length", "POST /ok HTTP/1.1\r\n" + host + "Content-Length: 0x3\r\n\r\nabc", []int{400}},
		{"too large a length", "POST /ok HTTP/1.1\r\n" + host + "Content-Length: 99999999999999999999\r\n\r\nabc", []int{400}},
		{"list of lengths", "POST /ok HTTP/1.1\r\n" + host + "Content-Length: 3, 3\r\n\r\nabc", []int{400}},
		{"length and chunks", "POST /ok HTTP/1.1\r\n" + host + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + get + host + "\r\n", []int{400}},
		{"chunks", "POST /ok HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + get + host + "\r\n", []int{200, 200}},
		{"bad chunk", "POST /ok HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n" + get + host + "\r\n", []int{400}},
		{"chunk without its end", "POST /ok HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcGET", []int{400}},
		{"chunk with LF", "POST /ok HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n", []int{400}},
		{"unknown coding", "POST /ok HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip\r\n\r\nabc", []int{501}},
		{"coding twice", "POST /ok HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []int{501}},
		{"codings", "POST /ok HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", []int{501}},
		{"coding with rubbish", "POST /ok HTTP/1.1\r\n" + host + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", []int{400}},
		{"chunks in HTTP/1.0", "POST /ok HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []int{400}},
		{"another expectation", "POST /ok HTTP/1.1\r\n" + host + "Expect: 200-maybe\r\nContent-Length: 3\r\n\r\nabc", []int{417}},
		{"absolute URL of another host", "GET http://other/ok HTTP/1.1\r\n" + host + "\r\n", []int{200}},
		{"bad escape", "GET /%zz HTTP/1.1\r\n" + host + "\r\n", []int{400}},
		{"no path", "GET ok HTTP/1.1\r\n" + host + "\r\n", []int{400}},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\r\n" + host + "\r\n", []int{200}},
		{"CONNECT", "CONNECT other:80 HTTP/1.1\r\n" + host + "\r\n", []int{200}},
		{"many more requests", strings.Repeat(get+host+"\r\n", 1000), slices.Repeat([]int{200}, 1000)},
		{"many requests and a malformed one", strings.Repeat(get+host+"\r\n", 100) + "GET\r\n\r\n", append(slices.Repeat([]int{200}, 100), 400)},
		{"half a line", "GET /o", []int{400}},
		{"half a header", get + "Ho", []int{400}},
		{"half a body", "POST /ok HTTP/1.1\r\n" + host + "Content-Length: 30\r\n\r\nabc", []int{400}},
		{"half of the second", get + host + "\r\n" + get, []int{200, 400}},
		{"requests after a malformed one", "G(T / HTTP/1.1\r\n\r\n" + get + host + "\r\n" + get + host + "\r\n", []int{400}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			st := newTestServer(t, work.Setup{}, nil)
			c := st.connect()
			_, err := io.WriteString(c, tt.send)
			must(t, err)
			must(t, c.CloseWrite())
			got := readAnswers(t, c)
			var statuses []int
			for _, resp := range got {
				statuses = append(statuses, resp.StatusCode)
				wantEnvelope(t, resp)
			}
			if fmt.Sprint(statuses) != fmt.Sprint(tt.want) {
				t.Errorf("got %v, want %v", statuses, tt.want)
			}
		})
	}
}

// TestReasons checks that an answer says which part of a request is invalid,
// and why.
func TestReasons(t *testing.T) {
	for text, want := range map[string]string{
		"GET /ok\r\n\r\n":                    "the request line has no version",
		get + host + "X: y\r\nA : b\r\n\r\n": "header line 3 has whitespace before the colon",
		get + "Host: [::1\r\n\r\n":           "the Host field is not a host with an optional port",
	} {
		c := newTestServer(t, work.Setup{}, nil).connect()
		_, err := io.WriteString(c, text)
		must(t, err)
		var body struct {
			Errors []struct{ Description string }
		}
		must(t, json.NewDecoder(readAnswers(t, c)[0].Body).Decode(&body))
		if got := body.Errors[0].Description; got != "invalid HTTP/1.1 request: "+want {
			t.Errorf("%q: %s", text, got)
		}
	}
}

// TestBrokenBodies checks request bodies that can't be read to the end. The
// handler must get the reason at once, while the client is still connected.
func TestBrokenBodies(t *testing.T) {
	st := newTestServer(t, work.Setup{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		_, err := io.Copy(io.Discard, r.Body)
		e, ok := errors.AsType[*http1.Error](err)
		if !ok {
			e = &http1.Error{Status: http.StatusInternalServerError, Reason: fmt.Sprint(err)}
		}
		w.WriteHeader(e.Status)
		io.WriteString(w, e.Reason)
	}))
	for text, want := range map[string]string{
		"3 \r\n":                     "400 a chunk's size has whitespace",
		"3;\x00":                     "400 a chunk extension has a control character",
		"3\r\nabcd":                  "400 a chunk is longer than its size, or no CRLF follows it",
		"3\r\nabc\r\n0\r\nX : y\r\n": "400 a name in the trailer has whitespace",
		"7fffffff\r\n":               "413 the body is too large",
		"3\r\nabc\r\nfffff\r\n":      "413 the body is too large",
	} {
		for _, pieces := range []bool{false, true} {
			c := st.connect()
			whole := "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n" + text
			for i := range len(whole) {
				if !pieces {
					_, err := io.WriteString(c, whole)
					must(t, err)
					break
				}
				_, err := io.WriteString(c, whole[i:i+1])
				must(t, err)
			}
			resp := readAnswers(t, c)[0]
			reason, err := io.ReadAll(resp.Body)
			must(t, err)
			if got := fmt.Sprint(resp.StatusCode, " ", string(reason)); got != want {
				t.Errorf("%q, in pieces: %t: got %s, want %s", text, pieces, got, want)
			}
		}
	}
}

// wantEnvelope fails the test unless the answer contains the envelope with
// exactly one error. If the answer does not come from the handler, the error
// must also have all its fields, and the answer must be the last on its
// connection.
func wantEnvelope(t *testing.T, resp *http.Response) {
	t.Helper()
	body, _ := io.ReadAll(resp.Body)
	var e struct {
		Meta     map[string]any
		Errors   []map[string]any
		Warnings []any
	}
	if err := json.Unmarshal(body, &e); err != nil || e.Meta == nil || len(e.Errors) != 1 || e.Warnings == nil || resp.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("status %d without the envelope: %v %s: %v", resp.StatusCode, resp.Header, body, err)
	}
	id := resp.Header.Get("X-Request-Id")
	if id == "handler" {
		return
	}
	p := e.Errors[0]
	if id == "" || !resp.Close || p["code"] == "" || p["description"] == "" || p["error"] != http.StatusText(resp.StatusCode) {
		t.Errorf("status %d: %v %s", resp.StatusCode, resp.Header, body)
	}
	if sched, _ := e.Meta["sched"].(map[string]any); sched["cluster"] != "tiny" || sched["release"] == "" {
		t.Errorf("meta %v", e.Meta)
	}
}

// TestLateHeader checks that a client gets an answer if it stops sending within
// a header, and none if it stops before the header.
func TestLateHeader(t *testing.T) {
	idle := testLimits
	idle.Idle = 300 * time.Millisecond
	for _, tt := range []struct {
		name, send string
		want       []int
	}{
		{"nothing", "", nil},
		{"a blank line", "\r\n", nil},
		{"a part of the line", "GET /o", []int{408}},
		{"a part of the header", get + "Ho", []int{408}},
		{"no second request", get + host + "\r\n", []int{200}},
		{"a part of the second", get + host + "\r\n" + get, []int{200, 408}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newTestServer(t, work.Setup{Limits: idle}, nil).connect()
			_, err := io.WriteString(c, tt.send)
			must(t, err)
			var got []int
			for _, resp := range readAnswers(t, c) {
				got = append(got, resp.StatusCode)
				wantEnvelope(t, resp)
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// A beginClient tells when a request has begun.
type beginClient struct {
	http1Client
	begun chan bool
}

func (c beginClient) Begun() { c.http1Client.Begun(); c.begun <- true }

// TestReclaim checks what happens to a connection when another client needs its
// slot. It must be closed unless a request is being answered. If part of a
// request has arrived, the client must get an answer.
func TestReclaim(t *testing.T) {
	entered, release := make(chan bool), make(chan bool)
	st := newTestServer(t, work.Setup{Limits: work.Limits{ReadHeader: time.Minute, ReadBody: time.Minute, Idle: time.Minute, Stall: time.Minute,
		Call: time.Minute, Accounting: time.Minute, Connect: time.Minute, Drain: time.Minute, Header: 8 << 10, Body: 1, Answers: 1}}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- true
		<-release
		w.Header().Set("X-Request-Id", "handler")
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"meta":{},"errors":[{}],"warnings":[]}`)
	}))
	begun := make(chan bool, 10)
	serve := func() (client *net.TCPConn, v *http1server.Conn) {
		client, c := st.pair()
		conn := st.add(c)
		v = st.http1.NewConn(withFacts(c, conn), c, beginClient{http1Client{conn, st.server, c}, begun})
		conn.Attach(c, c, v)
		go v.Serve()
		return client, v
	}

	silent, v := serve()
	if !v.Reclaim() {
		t.Error("a connection without a request stays open")
	}
	if got := readAnswers(t, silent); got != nil {
		t.Errorf("answered %v", got)
	}

	half, v := serve()
	io.WriteString(half, get+"Ho")
	<-begun
	for range 2 { // a second call returns the same result
		if !v.Reclaim() {
			t.Error("a connection with a part of a header stays open")
		}
	}
	if got := readAnswers(t, half); len(got) != 1 || got[0].StatusCode != http.StatusRequestTimeout {
		t.Errorf("answered %v", got)
	}

	busy, v := serve()
	io.WriteString(busy, get+host+"Connection: close\r\n\r\n")
	if <-entered; v.Reclaim() {
		t.Error("a connection whose request is being answered is closed")
	}
	release <- true
	if got := readAnswers(t, busy); len(got) != 1 || got[0].StatusCode != http.StatusOK {
		t.Errorf("answered %v", got)
	}
}

// A hookedConn is a connection that calls a function during a read.
type hookedConn struct {
	net.Conn
	during []func()
	pieces []string
}

func (c *hookedConn) Read(p []byte) (int, error) {
	if len(c.pieces) == 0 {
		return c.Conn.Read(p)
	}
	c.during[0]()
	n := copy(p, c.pieces[0])
	c.during, c.pieces = c.during[1:], c.pieces[1:]
	return n, nil
}

// TestRequestAfterReclaim checks a request that is completed just after its
// connection was reclaimed for another client. The request must not be served,
// because the dispatcher already counts the connection as closed.
func TestRequestAfterReclaim(t *testing.T) {
	st := newTestServer(t, work.Setup{}, nil)
	for name, tt := range map[string]struct {
		pieces []string
		want   int
	}{
		"no request":       {[]string{get + host + "\r\n"}, 0},
		"half of a header": {[]string{get, host + "\r\n"}, http.StatusServiceUnavailable},
	} {
		client, c := st.pair()
		u := &hookedConn{Conn: c, pieces: tt.pieces}
		h := st.newHTTP1Conn(u, c, st.add(c))
		for range tt.pieces {
			u.during = append(u.during, func() {})
		}
		u.during[len(u.during)-1] = func() {
			if !h.Reclaim() {
				t.Errorf("%s: the connection stays open", name)
			}
		}
		h.Serve()
		if got := readAnswers(t, client); tt.want == 0 && got != nil || tt.want != 0 && (len(got) != 1 || got[0].StatusCode != tt.want) {
			t.Errorf("%s: answered %v", name, got)
		}
	}
}

// TestRefusedWhileSending checks that a client whose request is refused can
// read the answer even while it is still sending.
func TestRefusedWhileSending(t *testing.T) {
	st := newTestServer(t, work.Setup{}, nil)
	c := st.connect()
	go func() {
		io.WriteString(c, "nonsense\r\n")
		io.WriteString(c, strings.Repeat("more\r\n", 10_000))
	}()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	must(t, err)
	if wantEnvelope(t, resp); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("status %s", resp.Status)
	}
}
