package worker

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// TestStalledStream checks that an HTTP/2 client that does not read its answer
// can't keep its request in progress permanently. The stream's window is
// exhausted, but the connection never fills up.
func TestStalledStream(t *testing.T) {
	limits := testLimits
	limits.Stall = 100 * time.Millisecond
	for _, size := range []int{64 << 10, 1000} { // a Write of 1000 bytes does not wait for the client, but the next Flush does
		ended := make(chan error, 1)
		st := newTestServer(t, work.Setup{Limits: limits}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			var err error
			for piece := make([]byte, size); err == nil; {
				if _, err = w.Write(piece); err == nil {
					err = http.NewResponseController(w).Flush()
				}
			}
			ended <- err
		}))
		r := st.getHTTP2(t)
		defer r.Body.Close() // the answer is not read
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatalf("the answer does not end: pieces of %d bytes", size)
		}
	}
}

// TestBrokenStream checks that an aborted HTTP/2 answer has no END_STREAM.
func TestBrokenStream(t *testing.T) {
	st := newTestServer(t, work.Setup{Limits: testLimits}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write(make([]byte, 100<<10))
		panic(http.ErrAbortHandler)
	}))
	r := st.getHTTP2(t)
	defer r.Body.Close()
	if b, err := io.ReadAll(r.Body); err == nil {
		t.Errorf("a regular end after %d bytes", len(b))
	}
}

// TestClosedWindow checks that a stream whose client gives it no window is
// reset while another request waits. The worker must report this as an offence
// of the client.
func TestClosedWindow(t *testing.T) {
	st := newTestServer(t, work.Setup{Setup: ipc.Setup{Requests: 1}, Limits: testLimits, Admission: testAdmission}, nil)
	reports := make(chan work.OffenceKind, 10)
	st.report = func(m ipc.Message) error {
		if o, ok := m.(*work.Offence); ok {
			reports <- o.Kind
		}
		return nil
	}
	tlsConn := st.rawHTTP2(t, 1)
	io.WriteString(tlsConn, preface+rawFrame(4, 0, 0, "\x00\x04\x00\x00\x00\x00")+rawFrame(1, 5, 1, "\x82\x87\x84\x01\x03lab"))
	awaitFrame(t, tlsConn, headersFrame) // the answer begins
	waiter := st.connect()
	io.WriteString(waiter, get+host+"\r\n")
	waiter.SetDeadline(time.Now().Add(time.Minute))
	if r, err := http.ReadResponse(bufio.NewReader(waiter), nil); err != nil || r.StatusCode != http.StatusOK {
		t.Errorf("the other request: %v, %v", r, err)
	}
	awaitFrame(t, tlsConn, resetFrame)
	select {
	case offence := <-reports:
		if offence != work.BadRequest {
			t.Errorf("the dispatcher receives %v", offence)
		}
	case <-time.After(time.Minute):
		t.Error("the dispatcher receives no offence")
	}
}

// TestStalledRefusal checks that a blocked HTTP/2 client that gives no window to
// the refusal of its request can't keep its connection.
func TestStalledRefusal(t *testing.T) {
	limits := testLimits
	limits.Stall = 100 * time.Millisecond
	st := newTestServer(t, work.Setup{Limits: limits, Admission: testAdmission}, nil)
	tlsConn := st.rawHTTP2(t, 1)
	st.table.Pause(1, time.Hour)
	io.WriteString(tlsConn, preface+rawFrame(4, 0, 0, "\x00\x04\x00\x00\x00\x00")+rawFrame(1, 5, 1, "\x82\x87\x84\x01\x03lab"))
	awaitFrame(t, tlsConn, headersFrame)
	awaitFrame(t, tlsConn, resetFrame)
	if _, err := io.Copy(io.Discard, tlsConn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection stays open")
	}
}

// rawHTTP2 returns the client's end of an HTTP/2 connection, after the TLS
// handshake. id is the number of the connection.
func (st *testServer) rawHTTP2(t *testing.T, id uint64) net.Conn {
	t.Helper()
	c := tls.Client(st.connectTLS(id, "h2"), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	must(t, c.Handshake())
	c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

// awaitFrame reads until a frame of the given kind arrives.
func awaitFrame(t *testing.T, c net.Conn, kind byte) {
	t.Helper()
	for head := make([]byte, frameHeader); ; {
		if _, err := io.ReadFull(c, head); err != nil {
			t.Fatalf("no frame of kind %d: %v", kind, err)
		}
		if _, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(head)>>8)); err != nil {
			t.Fatal(err)
		}
		if head[3] == kind {
			return
		}
	}
}

// getHTTP2 sends a GET over a new connection.
func (st *testServer) getHTTP2(t *testing.T) *http.Response {
	t.Helper()
	conn := st.connectTLS(0, "h2")
	client := &http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return conn, nil },
	}}
	r, err := client.Get("https://gateway/")
	must(t, err)
	if r.ProtoMajor != 2 {
		t.Fatal(r.Proto)
	}
	return r
}
