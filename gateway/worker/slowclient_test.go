package worker

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// readingHandler returns a handler that reads the whole body of a POST request,
// however long that takes. The handler sends nil to ended when it begins, and
// the result of reading when it has finished. It then answers with 408.
func readingHandler(ended chan<- error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "POST" {
			return
		}
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Hour))
		ended <- nil // the handler has begun
		_, err := io.Copy(io.Discard, r.Body)
		ended <- err
		w.WriteHeader(http.StatusRequestTimeout)
	}
}

func shortStall() work.Limits {
	limits := testLimits
	limits.Stall = 50 * time.Millisecond
	return limits
}

// TestSlowBodyFreesSlot checks a client that sends half a body. It must keep
// its place, but only until another client needs the place.
func TestSlowBodyFreesSlot(t *testing.T) {
	ended := make(chan error, 2)
	st := newTestServer(t, work.Setup{Setup: ipc.Setup{Requests: 1}, Limits: shortStall()}, readingHandler(ended))
	slow := st.connect()
	fmt.Fprint(slow, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
	<-ended
	select {
	case err := <-ended:
		t.Fatalf("ended although no client waits: %v", err)
	case <-time.After(4 * shortStall().Stall):
	}
	waiter := st.connect()
	fmt.Fprint(waiter, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if r, err := http.ReadResponse(bufio.NewReader(waiter), nil); err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("the waiting request: %v, %v", r, err)
	}
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the slow body ended with %v", err)
	}
	if r, err := http.ReadResponse(bufio.NewReader(slow), nil); err != nil || r.StatusCode != http.StatusRequestTimeout {
		t.Errorf("the slow client received %v, %v", r, err)
	}
}

// TestSlowBodyIsReclaimed checks a request whose body does not arrive. When its slot
// is needed, it must be answered with 408.
func TestSlowBodyIsReclaimed(t *testing.T) {
	ended := make(chan error, 2)
	st := newTestServer(t, work.Setup{Limits: shortStall()}, readingHandler(ended))
	slow := st.connect()
	fmt.Fprint(slow, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
	<-ended
	st.table.Reclaim(nextID.Load())
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the body ended with %v", err)
	}
	if r, err := http.ReadResponse(bufio.NewReader(slow), nil); err != nil || r.StatusCode != http.StatusRequestTimeout {
		t.Errorf("got %v, %v", r, err)
	}
}

// TestYoungIsReclaimed checks a connection whose slot is needed just after the
// connection was accepted or its last request was answered. It must end with
// its next answer. Otherwise a client that sends requests continuously would
// keep the slot.
func TestYoungIsReclaimed(t *testing.T) {
	st := newTestServer(t, work.Setup{}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	client, raw := st.pair()
	c := st.add(raw)
	st.table.Reclaim(raw.ID)
	go st.newHTTP1Conn(raw, raw, c).Serve()
	fmt.Fprint(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if r, err := http.ReadResponse(bufio.NewReader(client), nil); err != nil || r.StatusCode != http.StatusOK || !r.Close {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestBusyIsReclaimed checks a connection whose slot is needed, or whose worker ends,
// while a request is being answered. It must end with this answer, and say so.
// If the header was sent before, it must not end if another request has arrived,
// because the client would not know whether that request was carried out.
func TestBusyIsReclaimed(t *testing.T) {
	const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	reclaim := func(st *testServer, id uint64) { st.table.Reclaim(id) }
	retire := func(st *testServer, _ uint64) { st.table.Retire() }
	drain := func(st *testServer, _ uint64) { st.table.Drain(0, 0) }
	for _, tt := range []struct {
		name       string
		headerSent bool
		next       string // arrives while the first request is being answered
		end        func(*testServer, uint64)
		want       []bool // for each answer, whether it announces the end
	}{
		{"reclaimed", false, "", reclaim, []bool{true}},
		{"retired", false, "", retire, []bool{true}},
		{"drained", false, "", drain, []bool{true}},
		{"drained, header sent", true, "", drain, []bool{false}},
		{"drained, header sent, another request", true, request, drain, []bool{false, true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			entered, release := make(chan bool, len(tt.want)), make(chan bool)
			st := newTestServer(t, work.Setup{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if tt.headerSent {
					must(t, http.NewResponseController(w).Flush())
				}
				entered <- true
				<-release
				w.WriteHeader(http.StatusOK)
			}))
			client, raw := st.pair()
			go st.newHTTP1Conn(raw, raw, st.add(raw)).Serve()
			fmt.Fprint(client, request)
			<-entered
			fmt.Fprint(client, tt.next)
			for tt.next != "" && !raw.HasUnread() {
				time.Sleep(time.Millisecond)
			}
			tt.end(st, raw.ID)
			close(release)
			must(t, client.SetReadDeadline(time.Now().Add(time.Minute)))
			in := bufio.NewReader(client)
			for i, last := range tt.want {
				r, err := http.ReadResponse(in, nil)
				must(t, err)
				if _, err := io.Copy(io.Discard, r.Body); err != nil || r.Close != last {
					t.Errorf("answer %d announces the end: %v; %v", i, r.Close, err)
				}
			}
			if _, err := in.ReadByte(); err != io.EOF {
				t.Errorf("behind the answers: %v", err)
			}
		})
	}
}

// TestUnreadBodyEnds checks a connection whose request was answered before its
// body was read. The connection must end, even if the rest of the body never
// arrives. Otherwise refused clients could keep all others out.
func TestUnreadBodyEnds(t *testing.T) {
	st := newTestServer(t, work.Setup{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
	}))
	for _, request := range []string{
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nha",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n",
	} {
		c := st.connect()
		fmt.Fprint(c, request)
		wantAnswerAndEnd(t, c)
	}
}

func wantAnswerAndEnd(t *testing.T, c net.Conn) *http.Response {
	t.Helper()
	c.SetDeadline(time.Now().Add(time.Minute))
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(text))
	if err != nil {
		t.Error(err)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("after the answer: %v", err)
	}
	return resp
}

// TestWholeHeaderStays checks that a client keeps its connection once it has
// sent a complete header, even before the handler is called. It must not matter
// how the header was split. A client that has sent only part of a header must
// lose its connection.
func TestWholeHeaderStays(t *testing.T) {
	const partial = "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n"
	for text, whole := range map[string]bool{
		partial: false, partial + "\r": false, partial + "\r\n": true, partial + "\n": true, "\r\n\r\n" + partial: false, "GET / HTTP/1.0\n\n": true,
	} {
		for _, size := range []int{1, 2, 7, len(text)} {
			entered, release := make(chan bool), make(chan bool)
			st := newTestServer(t, work.Setup{}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				close(entered)
				<-release
			}))
			_, c := st.pair()
			read := make(chan bool)
			h := st.newHTTP1Conn(&piecesConn{Conn: c, pieces: slices.Collect(slices.Chunk([]byte(text), size)), read: read}, c, st.add(c))
			go h.Serve()
			if whole {
				<-entered
			} else {
				<-read
			}
			if reclaimed := h.Reclaim(); reclaimed == whole {
				t.Errorf("%q in pieces of %d: reclaimed: %t", text, size, reclaimed)
			}
			close(release)
		}
	}
}

// A piecesConn is a connection from which some pieces arrive. It closes read
// when there are no more.
type piecesConn struct {
	net.Conn
	pieces [][]byte
	read   chan bool
}

func (c *piecesConn) Read(p []byte) (int, error) {
	if len(c.pieces) == 0 {
		if c.read != nil {
			close(c.read)
			c.read = nil
		}
		return c.Conn.Read(p)
	}
	n := copy(p, c.pieces[0])
	c.pieces = c.pieces[1:]
	return n, nil
}
