package worker

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// A transport is a kind of connection. Its functions return the client's end of
// a new connection, shut down the client's sending side, or disconnect the
// client.
type transport struct {
	name      string
	connect   func(*testServer) net.Conn
	halfClose func(net.Conn) error
	abandon   func(net.Conn) error
}

var transports = []transport{
	{"TCP", (*testServer).overTCP, closeWrite, reset},
	{"UNIX", (*testServer).overUnix, closeWrite, net.Conn.Close},
	{"TLS", (*testServer).overTLS, closeWrite, reset},
	{"TLS, closed below as well", (*testServer).overTLS, func(c net.Conn) error {
		if err := closeWrite(c); err != nil {
			return err
		}
		return closeWrite(c.(*tls.Conn).NetConn())
	}, reset},
}

func closeWrite(c net.Conn) error { return c.(interface{ CloseWrite() error }).CloseWrite() }

// reset closes a TCP connection with a reset, so that the server notices
// immediately.
func reset(c net.Conn) error {
	if tlsConn, ok := c.(*tls.Conn); ok {
		c = tlsConn.NetConn()
	}
	if err := c.(*net.TCPConn).SetLinger(0); err != nil {
		return err
	}
	return c.Close()
}

func (st *testServer) overTCP() net.Conn { return st.connect() }

func (st *testServer) overUnix() net.Conn {
	c, client := connPair(st.t, ipc.Connection{ID: nextID.Add(1), Network: ipc.Unix}, time.Minute)
	go st.newHTTP1Conn(c, c, st.add(c)).Serve()
	return client
}

func (st *testServer) overTLS() net.Conn {
	client := tls.Client(st.connectTLS(0), &tls.Config{InsecureSkipVerify: true})
	must(st.t, client.HandshakeContext(st.t.Context()))
	return client
}

// TestHalfClose checks that a client that shuts down its sending side gets all
// its answers. When a client disconnects, its request must be cancelled, even
// if the client has already shut down its sending side.
func TestHalfClose(t *testing.T) {
	for _, tr := range transports {
		for _, tt := range []struct {
			name, send string
			want       []int
		}{
			{"GET", get + host + "\r\n", []int{200}},
			{"HTTP/1.0", "GET /ok HTTP/1.0\r\n\r\n", []int{200}},
			{"body", "POST /ok HTTP/1.1\r\n" + host + "Content-Length: 3\r\n\r\nabc", []int{200}},
			{"chunks", "POST /ok HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", []int{200}},
			{"several", get + host + "\r\n" + get + host + "\r\n" + get + host + "\r\n", []int{200, 200, 200}},
			{"half a body", "POST /ok HTTP/1.1\r\n" + host + "Content-Length: 30\r\n\r\nabc", []int{400}},
		} {
			t.Run(tr.name+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				st := newTestServer(t, work.Setup{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("X-Request-Id", "handler")
					if _, err := io.Copy(io.Discard, r.Body); err != nil {
						w.WriteHeader(http.StatusBadRequest)
						return
					}
					select {
					case <-r.Context().Done():
						w.WriteHeader(http.StatusBadGateway)
					case <-time.After(100 * time.Millisecond): // time for the end of the client's data to arrive
					}
				}))
				c := tr.connect(st)
				_, err := io.WriteString(c, tt.send)
				must(t, err)
				must(t, tr.halfClose(c))
				var got []int
				for _, resp := range readAnswers(t, c) {
					got = append(got, resp.StatusCode)
				}
				if fmt.Sprint(got) != fmt.Sprint(tt.want) {
					t.Errorf("got %v, want %v", got, tt.want)
				}
			})
		}
		for _, halfClosed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/gone/half-closed before: %t", tr.name, halfClosed), func(t *testing.T) {
				t.Parallel()
				entered, cancelled := make(chan bool), make(chan bool)
				st := newTestServer(t, work.Setup{}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					entered <- true
					<-r.Context().Done()
					close(cancelled)
				}))
				c := tr.connect(st)
				_, err := io.WriteString(c, get+host+"\r\n"+get+host+"\r\n") // a second request must not hide the end of the client's data
				must(t, err)
				<-entered
				if halfClosed {
					must(t, tr.halfClose(c))
				}
				must(t, tr.abandon(c))
				select {
				case <-cancelled:
				case <-time.After(time.Minute):
					t.Fatal("its request goes on")
				}
			})
		}
	}
}

// TestHalfCloseInLine checks requests that wait until they may be served. If
// the client shuts down its sending side, the request must keep waiting. If the
// client disconnects, the request must leave the queue.
func TestHalfCloseInLine(t *testing.T) {
	entered, release := make(chan string), make(chan bool)
	st := newTestServer(t, work.Setup{Setup: ipc.Setup{Requests: 1}, Limits: testLimits}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "handler")
		entered <- r.URL.Path
		<-release
	}))
	waiting := func(n int) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			_, now := st.limiter.Places()
			switch {
			case now == n:
				return
			case time.Now().After(end):
				t.Fatalf("%d requests wait, want %d", now, n)
			}
		}
	}
	ask := func(path string) *net.TCPConn {
		c := st.connect()
		_, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\n%s\r\n", path, host)
		must(t, err)
		return c
	}
	ask("/first")
	<-entered
	second, third := ask("/second"), ask("/third")
	waiting(2)
	must(t, second.CloseWrite())
	must(t, reset(third))
	waiting(1)
	release <- true
	if path := <-entered; path != "/second" {
		t.Errorf("the turn is %s's", path)
	}
	release <- true
	resp, err := http.ReadResponse(bufio.NewReader(second), nil)
	must(t, err)
	if resp.StatusCode != http.StatusOK {
		t.Errorf("status %s", resp.Status)
	}
}
