package worker

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// TestFrameBudget checks that the frames of an honest client stay within the
// budget for a minute, and that a flood exceeds it.
func TestFrameBudget(t *testing.T) {
	const headers, data, ping, window, reset = headersFrame, dataFrame, 6, windowFrame, resetFrame
	type client struct {
		b      *budget
		now    time.Time
		stream uint32
		ok     bool
	}
	sendFrame := func(c *client, f frame) {
		if f.kind == headers {
			c.stream += 2
		}
		f.stream = c.stream
		c.ok = c.b.spend(c.now, c.b.received(f)) && c.ok
	}
	sends := func(c *client, kinds ...byte) {
		for _, kind := range kinds {
			sendFrame(c, frame{kind: kind, length: 4})
		}
	}
	body := func(c *client, n, length int) {
		sendFrame(c, frame{kind: headers})
		for range n {
			sendFrame(c, frame{kind: data, length: length})
		}
		sendFrame(c, frame{kind: data, flags: endStream})
	}
	answer := func(c *client, pieces, length int) {
		c.b.sent(frame{kind: headers, length: 20})
		for range pieces {
			c.b.sent(frame{kind: data, length: length})
		}
		c.b.sent(frame{kind: data, flags: endStream, stream: c.stream})
	}
	minute := func(each time.Duration, act func(*client)) func(*client) {
		return func(c *client) {
			for d := time.Duration(0); d < time.Minute; d += each {
				act(c)
				c.now = c.now.Add(each)
			}
		}
	}
	for _, tt := range []struct {
		name   string
		act    func(*client)
		honest bool
	}{
		{"10,000 short answers a second", minute(100*time.Microsecond, func(c *client) {
			sends(c, headers)
			answer(c, 1, 500)
			sends(c, window, window)
		}), true},
		{"a long answer, with two updates for each 4 KiB", minute(time.Second, func(c *client) {
			sends(c, headers)
			answer(c, 10_000, 4<<10)
			for range 10_000 {
				sends(c, window, window)
			}
		}), true},
		{"a body in 4000 frames of 64 bytes, all sent before the handler reads it", minute(time.Second, func(c *client) {
			body(c, 4000, 64)
			c.b.took(4000 * 64)
			answer(c, 1, 100)
		}), true},
		{"a body of 256 KiB that the handler does not read", minute(time.Second, func(c *client) {
			body(c, 16, 16<<10)
			answer(c, 1, 100)
		}), true},
		{"small bodies that the handler does not read", minute(time.Second, func(c *client) {
			body(c, 1000, 64)
			answer(c, 1, 100)
		}), false},
		{"bytes that a handler has read pay only once", minute(time.Second, func(c *client) {
			body(c, 1000, 64)
			answer(c, 1, 100)
			body(c, 1000, 64)
			c.b.took(1000 * 64)
			answer(c, 1, 100)
		}), false},
		{"30 requests a second that are cancelled, with a PING each", minute(time.Second, func(c *client) {
			for range 30 {
				sends(c, headers, reset, ping)
			}
		}), true},
		{"a PING each second", minute(time.Second, func(c *client) { sends(c, ping) }), true},
		{"100 requests a second that are reset", minute(10*time.Millisecond, func(c *client) { sends(c, headers, reset) }), false},
		{"1000 PINGs a second", minute(time.Millisecond, func(c *client) { sends(c, ping) }), false},
		{"an answer byte by byte", minute(10*time.Millisecond, func(c *client) {
			c.b.sent(frame{kind: data, length: 1})
			sends(c, window, window)
		}), false},
		{"credit that was saved up", func(c *client) {
			sends(c, headers)
			answer(c, 1000, 16<<10)
			sends(c, headers)
			for range 2 * frameBurst {
				sends(c, ping)
			}
		}, false},
	} {
		now := time.Unix(1_700_000_000, 0)
		c := &client{b: newBudget(now), now: now, ok: true}
		if tt.act(c); c.ok != tt.honest {
			t.Errorf("%s: within the budget: %t", tt.name, c.ok)
		}
	}
}

// TestNoFrameIsFree sends many frames of each type on a stream in each state.
// The server must end the connection, and count an offence. A frame that it
// accepts without limit would let a client keep the gateway busy without a
// token.
func TestNoFrameIsFree(t *testing.T) {
	const (
		last  = "the last"
		flood = 20_000
	)
	// Requests for / are answered at once, and their bodies are not read. Other
	// requests are answered when the client resets their stream.
	var begun, offences sync.Map // channels, by the connection's number
	channel := func(m *sync.Map, id uint64) chan bool {
		c, _ := m.LoadOrStore(id, make(chan bool, 1000))
		return c.(chan bool)
	}
	server := newTestServer(t, work.Setup{Limits: testLimits, Admission: testAdmission}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			channel(&begun, r.Context().Value(connStateKey{}).(*connState).id) <- true
			<-r.Context().Done()
		}
	}))
	server.offences.reports = rate.New(1e6, 1e6, time.Now()) // all connections of this test together exceed the limit
	server.tracker.send = func(m ipc.Message) error {
		if o, ok := m.(*work.Offence); ok {
			channel(&offences, o.ID) <- true
		}
		return nil
	}
	const get, post, now, later = "\x82", "\x83", "\x84", "\x04\x05/wait"
	request := func(method, path string) string {
		flags := byte(4)
		if method == get {
			flags |= endStream
		}
		return rawFrame(headersFrame, flags, 1, method+"\x87"+path+"\x01\x03lab")
	}
	block := "\x82\x87\x84\x01\x03lab"
	begins := func(id uint64, _ net.Conn) { <-channel(&begun, id) }
	ends := func(_ uint64, c net.Conn) { awaitEnd(t, c, 1) }
	connections := uint64(0)
	for _, state := range []struct {
		name, frames string
		await        func(uint64, net.Conn)
		stream       uint32
	}{
		{"the connection", "", nil, 0},
		{"idle", "", nil, 1},
		{"open", request(post, later), begins, 1},
		{"half-closed", request(get, later), begins, 1},
		{"answered", request(get, now), ends, 1},
		{"answered before the body has arrived", request(post, now), ends, 1},
		{"reset", request(post, later) + rawFrame(resetFrame, 0, 1, "\x00\x00\x00\x08"), begins, 1},
	} {
		var wg sync.WaitGroup
		for _, kind := range []struct {
			name    string
			kind    byte
			flags   byte
			payload string
		}{
			{"empty DATA", dataFrame, 0, ""},
			{"the end of a body", dataFrame, endStream, ""},
			{"short DATA", dataFrame, 0, "x"},
			{"DATA", dataFrame, 0, strings.Repeat("x", smallData)},
			{"padding", dataFrame, isPadded, "\x1f" + strings.Repeat("\x00", 31)},
			{"much padding", dataFrame, isPadded, "\xff" + strings.Repeat("x", 600) + strings.Repeat("\x00", 255)},
			{"HEADERS", headersFrame, 5, block},
			{"HEADERS without an end", headersFrame, 4, block},
			{"half a HEADERS", headersFrame, 1, block},
			{"PRIORITY", 2, 0, "\x00\x00\x00\x03\x00"},
			{"RST_STREAM", resetFrame, 0, "\x00\x00\x00\x08"},
			{"SETTINGS", 4, 0, "\x00\x04\x00\x00\xff\xff"},
			{"an acknowledgement of SETTINGS", 4, 1, ""},
			{"PUSH_PROMISE", 5, 4, "\x00\x00\x00\x02" + block},
			{"PING", 6, 0, "12345678"},
			{"an answer to PING", 6, 1, "12345678"},
			{"GOAWAY", goAwayFrame, 0, "\x00\x00\x00\x00\x00\x00\x00\x00"},
			{"WINDOW_UPDATE", windowFrame, 0, "\x00\x00\x00\x01"},
			{"CONTINUATION", 9, 0, ""},
			{"PRIORITY_UPDATE", 16, 0, "\x00\x00\x00\x01u=0"},
			{"an unknown type", 99, 0, "?"},
		} {
			connections++
			id := connections
			c := server.rawHTTP2(t, id)
			wg.Go(func() {
				defer c.Close()
				_, _ = io.WriteString(c, preface+rawFrame(4, 0, 0, "")+state.frames)
				if state.await != nil {
					state.await(id, c)
				}
				go func() {
					frames := strings.Repeat(rawFrame(kind.kind, kind.flags, state.stream, kind.payload), flood)
					_, _ = io.WriteString(c, frames+rawFrame(6, 0, 0, last))
				}()
				answers, err := io.ReadAll(io.LimitReader(c, flood*(frameHeader+8)))
				if timeout, ok := err.(net.Error); ok && timeout.Timeout() || strings.Contains(string(answers), last) {
					t.Errorf("%s on a stream in the state %q: %d frames were accepted", kind.name, state.name, flood)
					return
				}
				select {
				case <-channel(&offences, id):
				case <-time.After(time.Minute):
					t.Errorf("%s on a stream in the state %q: no offence is counted", kind.name, state.name)
				}
			})
		}
		wg.Wait()
	}
}

// awaitEnd reads until the server has ended a stream.
func awaitEnd(t *testing.T, c net.Conn, stream uint32) {
	t.Helper()
	for head := make([]byte, frameHeader); ; {
		if _, err := io.ReadFull(c, head); err != nil {
			t.Fatalf("stream %d does not end: %v", stream, err)
		}
		if _, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(head)>>8)); err != nil {
			t.Fatal(err)
		}
		if binary.BigEndian.Uint32(head[5:]) == stream && (head[3] == dataFrame || head[3] == headersFrame) && head[4]&endStream != 0 {
			return
		}
	}
}

// TestClosedConnectionIsFreed checks that nothing keeps the memory of an HTTP/2
// connection after it has been closed. The client resets its stream before the
// handler answers, so that the handler sets deadlines for a closed stream.
func TestClosedConnectionIsFreed(t *testing.T) {
	conns, reset := make(chan weak.Pointer[http2Conn], 1), make(chan bool)
	st := newTestServer(t, work.Setup{Limits: testLimits, Admission: testAdmission}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := r.Context().Value(http2Key{}).(*http2Conn)
		conns <- weak.Make(c)
		<-r.Context().Done()
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Hour))
		_, _ = io.WriteString(w, "an answer that arrives too late")
		reset <- true
	}))
	st.tracker.send = func(ipc.Message) error { return nil }
	tlsConn := st.rawHTTP2(t, 1)
	_, err := io.WriteString(tlsConn, preface+rawFrame(4, 0, 0, "")+rawFrame(1, 4, 1, "\x83\x87\x84\x01\x03lab"))
	must(t, err)
	conn := <-conns
	_, err = io.WriteString(tlsConn, rawFrame(resetFrame, 0, 1, "\x00\x00\x00\x08"))
	must(t, err)
	<-reset
	// The answer to this PING shows that net/http has handled the deadlines.
	_, err = io.WriteString(tlsConn, rawFrame(6, 0, 0, "12345678"))
	must(t, err)
	awaitFrame(t, tlsConn, 6)
	must(t, tlsConn.(*tls.Conn).NetConn().Close())
	st.tracker.recordClose(1)
	for end := time.Now().Add(testLimits.Stall / 2); conn.Value() != nil; runtime.GC() {
		if time.Now().After(end) {
			t.Fatal("the memory of the connection is not freed")
		}
		time.Sleep(10 * time.Millisecond)
	}
}
