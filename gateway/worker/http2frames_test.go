package worker

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// Names of package http2server, which it does not export.
const (
	preface     = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	frameHeader = 9
	frameBurst  = 1000
	smallData   = 32

	dataFrame    = 0
	headersFrame = 1
	resetFrame   = 3
	goAwayFrame  = 7
	windowFrame  = 8
	endStream    = 1
	isPadded     = 8
)

func rawFrame(kind, flags byte, stream uint32, payload string) string {
	return string([]byte{0, byte(len(payload) >> 8), byte(len(payload)), kind, flags, byte(stream >> 24), byte(stream >> 16), byte(stream >> 8), byte(stream)}) + payload
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
	var begun, offences sync.Map // channels, by the client's address and by the connection's number
	channel := func(m *sync.Map, id any) chan bool {
		c, _ := m.LoadOrStore(id, make(chan bool, 1000))
		return c.(chan bool)
	}
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			channel(&begun, r.RemoteAddr) <- true
			<-r.Context().Done()
		}
	})
	const get, post, now, later = "\x82", "\x83", "\x84", "\x04\x05/wait"
	request := func(method, path string) string {
		flags := byte(4)
		if method == get {
			flags |= endStream
		}
		return rawFrame(headersFrame, flags, 1, method+"\x87"+path+"\x01\x03lab")
	}
	block := "\x82\x87\x84\x01\x03lab"
	begins := func(c net.Conn) { <-channel(&begun, c.LocalAddr().String()) }
	ends := func(c net.Conn) { awaitEnd(t, c, 1) }
	ping := rawFrame(6, 0, 0, "12345678")
	pongs := func(c net.Conn) { awaitFrame(t, c, 6) }
	connections := uint64(0)
	for _, state := range []struct {
		name, frames string
		await        func(net.Conn)
		stream       uint32
	}{
		{"the connection", ping, pongs, 0},
		{"idle", ping, pongs, 1},
		{"open", request(post, later), begins, 1},
		{"half-closed", request(get, later), begins, 1},
		{"answered", request(get, now), ends, 1},
		{"answered before the body has arrived", request(post, now), ends, 1},
		{"reset", request(post, later) + rawFrame(resetFrame, 0, 1, "\x00\x00\x00\x08"), begins, 1},
	} {
		// Each state has a server of its own: all connections of this test together
		// exceed the limit on reports.
		server := newTestServer(t, work.Setup{Limits: testLimits, Admission: testAdmission}, handler)
		server.report = func(m ipc.Message) error {
			if o, ok := m.(*work.Offence); ok {
				channel(&offences, o.ID) <- true
			}
			return nil
		}
		// The server waits at most two seconds for the first SETTINGS frame. So on a
		// busy machine, all streams must be in their state before a flood begins.
		var floods []func()
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
			_, err := io.WriteString(c, preface+rawFrame(4, 0, 0, "")+state.frames)
			must(t, err)
			state.await(c)
			floods = append(floods, func() {
				defer c.Close()
				go func() {
					frames := strings.Repeat(rawFrame(kind.kind, kind.flags, state.stream, kind.payload), flood)
					_, _ = io.WriteString(c, frames+rawFrame(6, 0, 0, last))
				}()
				answers, err := io.ReadAll(io.LimitReader(c, flood*(frameHeader+8)))
				if timeout, ok := err.(net.Error); ok && timeout.Timeout() || strings.Contains(string(answers), last) {
					t.Errorf("%s on a stream in the state %q: %d frames were accepted", kind.name, state.name, flood)
					return
				}
				if kind.kind == goAwayFrame {
					return // one second after this frame, the server ends an idle connection: on a busy machine, before the limit
				}
				select {
				case <-channel(&offences, id):
				case <-time.After(time.Minute):
					t.Errorf("%s on a stream in the state %q: no offence is counted, and the connection ends with %q, %v", kind.name, state.name, answers[max(0, len(answers)-60):], err)
				}
			})
		}
		var wg sync.WaitGroup
		for _, flood := range floods {
			wg.Go(flood)
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
// handler answers, so that the handler sets deadlines for a closed stream; or it
// closes the connection while the request is in progress.
func TestClosedConnectionIsFreed(t *testing.T) {
	for _, resets := range []bool{true, false} {
		t.Run(fmt.Sprintf("resets %t", resets), func(t *testing.T) {
			begun, ended := make(chan bool, 1), make(chan bool, 1)
			st := newTestServer(t, work.Setup{Limits: testLimits, Admission: testAdmission}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				begun <- true
				<-r.Context().Done()
				_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Hour))
				_, _ = io.WriteString(w, "an answer that arrives too late")
				ended <- true
			}))
			tlsConn := st.rawHTTP2(t, 1)
			_, err := io.WriteString(tlsConn, preface+rawFrame(4, 0, 0, "")+rawFrame(1, 4, 1, "\x83\x87\x84\x01\x03lab"))
			must(t, err)
			<-begun
			if resets {
				_, err = io.WriteString(tlsConn, rawFrame(resetFrame, 0, 1, "\x00\x00\x00\x08"))
				must(t, err)
				<-ended
				// The answer to this PING shows that net/http has handled the deadlines.
				_, err = io.WriteString(tlsConn, rawFrame(6, 0, 0, "12345678"))
				must(t, err)
				awaitFrame(t, tlsConn, 6)
			}
			must(t, tlsConn.(*tls.Conn).NetConn().Close())
			for end := time.Now().Add(testLimits.Stall / 2); st.newest.Value() != nil; runtime.GC() {
				if time.Now().After(end) {
					t.Fatal("the memory of the connection is not freed")
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
}

// TestIdleHTTP2 checks that a connection without a request gets GOAWAY, so that
// its client knows that a request sent at the same moment was not carried out.
// A request that takes longer than an idle connection may last is answered. A
// client that stops sending breaks no rule.
func TestIdleHTTP2(t *testing.T) {
	limits := testLimits
	limits.Idle = 300 * time.Millisecond
	for _, tt := range []struct {
		name, send string
		want       []byte // kinds of frames that must arrive in this order
	}{
		{"no request", "", []byte{goAwayFrame}},
		{"after a request", rawFrame(1, 5, 1, "\x83\x87\x84\x01\x03lab"), []byte{headersFrame, goAwayFrame}},
		{"a part of a frame", "\x00\x00", nil},
		{"a part of a header", rawFrame(1, 1, 1, "\x83\x87\x84\x01\x03lab"), nil},
		{"a refusal of net/http, without a window", rawFrame(4, 0, 0, "\x00\x04\x00\x00\x00\x00") + rawFrame(1, 5, 1, "\x82\x87\x84\x01\x03lab\x00\x02te\x03foo"), []byte{headersFrame, goAwayFrame}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			st := newTestServer(t, work.Setup{Limits: limits, Admission: testAdmission}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(2 * limits.Idle)
			}))
			c := st.rawHTTP2(t, 1)
			_, err := io.WriteString(c, preface+rawFrame(4, 0, 0, "")+tt.send)
			must(t, err)
			for _, kind := range tt.want {
				awaitFrame(t, c, kind)
			}
			if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection stays open")
			}
			if n := st.counts.Frames.Total(); n > 0 {
				t.Errorf("%d offences", n)
			}
		})
	}
}
