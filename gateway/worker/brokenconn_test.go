package worker

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/worker/clientconn"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// A point is the moment at which a connection breaks.
type point struct {
	name string
	send string // what the client has sent
	wait string // the answer that the client has read: it ends with this text
	big  bool   // the server is writing an answer that the client does not read
	raw  bool   // the client has sent this below TLS, so the handshake is not complete
}

// The parts of requests. The paths select what the handler of
// TestBrokenConnection does.
const (
	waitHead  = "GET /wait HTTP/1.1\r\n" + host + "\r\n"
	bigHead   = "GET /big HTTP/1.1\r\n" + host + "\r\n"
	chunkHead = "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n"
	okHead    = "GET / HTTP/1.1\r\n" + host + "\r\n"
)

// http1Points lists the points of an HTTP/1 connection.
var http1Points = []point{
	{name: "before a request"},
	{name: "in a request line", send: "GET / HT"},
	{name: "in a header", send: "GET / HTTP/1.1\r\nHo"},
	{name: "before the empty line", send: "GET / HTTP/1.1\r\n" + host},
	{name: "before a body", send: "POST / HTTP/1.1\r\n" + host + "Content-Length: 9\r\n\r\n"},
	{name: "in a body", send: "POST / HTTP/1.1\r\n" + host + "Content-Length: 9\r\n\r\nabc"},
	{name: "before a chunk", send: chunkHead},
	{name: "in a chunk's size", send: chunkHead + "1"},
	{name: "in a chunk", send: chunkHead + "9\r\nabc"},
	{name: "after a chunk", send: chunkHead + "3\r\nabc\r\n"},
	{name: "in a trailer", send: chunkHead + "0\r\nX: y"},
	{name: "while the request waits", send: waitHead},
	{name: "while the request waits, with a second header", send: waitHead + "GET / HTTP/1.1\r\nHo"},
	{name: "within an answer", send: bigHead, big: true},
	{name: "after an answer", send: okHead, wait: "answer"},
	{name: "in a second request line", send: okHead + "GET", wait: "answer"},
	{name: "in a second header", send: okHead + "GET / HTTP/1.1\r\nHo", wait: "answer"},
	{name: "in a second body", send: okHead + chunkHead + "9\r\n", wait: "answer"},
}

// handshakePoints lists the points of a TLS handshake.
var handshakePoints = []point{
	{name: "before the handshake", raw: true},
	{name: "in a record's header", raw: true, send: "\x16\x03"},
	{name: "in the client's first message", raw: true, send: "\x16\x03\x01\x02\x00\x01"},
	{name: "in plain HTTP", raw: true, send: "GET / H"},
}

// http2Points lists the points of an HTTP/2 connection.
var http2Points = []point{
	{name: "before the preface"},
	{name: "in the preface", send: preface[:9]},
	{name: "before a request", send: preface + rawFrame(4, 0, 0, "")},
	{name: "in a frame's header", send: preface + rawFrame(4, 0, 0, "") + "\x00\x00"},
	{name: "in a header", send: preface + rawFrame(4, 0, 0, "") + rawFrame(1, 5, 1, h2Header("GET", "/"))[:12]},
	{name: "before the rest of a header", send: preface + rawFrame(4, 0, 0, "") + rawFrame(1, 1, 1, h2Header("GET", "/"))},
	{name: "before a body", send: preface + rawFrame(4, 0, 0, "") + rawFrame(1, 4, 1, h2Header("POST", "/"))},
	{name: "in a body", send: preface + rawFrame(4, 0, 0, "") + rawFrame(1, 4, 1, h2Header("POST", "/")) + rawFrame(0, 0, 1, "abc")[:11]},
	{name: "while the request waits", send: preface + rawFrame(4, 0, 0, "") + rawFrame(1, 5, 1, h2Header("GET", "/wait"))},
	{name: "within an answer", send: preface + rawFrame(4, 0, 0, "") + rawFrame(1, 5, 1, h2Header("GET", "/big")), big: true},
	{name: "after an answer", send: preface + rawFrame(4, 0, 0, "") + rawFrame(1, 5, 1, h2Header("GET", "/")), wait: "answer"},
}

// h2Header returns the header block of an HTTP/2 request.
func h2Header(method, path string) string {
	m := map[string]string{"GET": "\x82", "POST": "\x83"}[method]
	return m + "\x87\x01\x03lab\x04" + string(rune(len(path))) + path
}

// A breakage breaks a connection. Its function act gets the client's end below
// TLS, and the server's end. If act is nil, the client remains silent.
type breakage struct {
	name    string
	act     func(net.Conn, *faultyConn)
	tlsOnly bool
	writes  bool // it takes effect only while the server writes to the connection; over HTTP/2 it waits for the stream's window instead
	reads   bool // it takes effect only while the server reads
}

var breakages = []breakage{
	{name: "reset", act: func(client net.Conn, _ *faultyConn) {
		if c, ok := client.(*net.TCPConn); ok {
			_ = c.SetLinger(0)
		}
		client.Close()
	}},
	{name: "closed", act: func(client net.Conn, _ *faultyConn) { client.Close() }},
	{name: "half-closed", act: func(client net.Conn, _ *faultyConn) { _ = closeWrite(client) }, reads: true},
	{name: "EIO", act: func(_ net.Conn, c *faultyConn) { c.fail(unix.EIO, unix.EIO) }},
	{name: "ETIMEDOUT", act: func(_ net.Conn, c *faultyConn) { c.fail(unix.ETIMEDOUT, unix.ETIMEDOUT) }},
	{name: "EIO from a read", act: func(_ net.Conn, c *faultyConn) { c.fail(unix.EIO, nil) }, reads: true},
	{name: "EIO from a write", act: func(_ net.Conn, c *faultyConn) { c.fail(nil, unix.EIO) }, writes: true},
	{name: "EOF and EIO", act: func(_ net.Conn, c *faultyConn) { c.fail(io.EOF, unix.EIO) }},
	{name: "a record that can't be decrypted", tlsOnly: true, reads: true, act: func(client net.Conn, _ *faultyConn) {
		_, _ = io.WriteString(client, "\x17\x03\x03\x00\x20"+strings.Repeat("U", 32))
	}},
	{name: "silence"},
}

// A faultyConn is a connection whose reads and writes fail when the test says
// so.
type faultyConn struct {
	net.Conn
	readErr, writeErr atomic.Pointer[error]
}

// fail makes all reads and writes fail from now on, unless the error is nil. It
// also ends those that are in progress.
func (c *faultyConn) fail(read, write error) {
	if read != nil {
		c.readErr.Store(&read)
	}
	if write != nil {
		c.writeErr.Store(&write)
	}
}

// interrupt ends the reads and writes that should already have failed.
func (c *faultyConn) interrupt() {
	if c.readErr.Load() != nil {
		_ = c.Conn.SetReadDeadline(time.Now())
	}
	if c.writeErr.Load() != nil {
		_ = c.Conn.SetWriteDeadline(time.Now())
	}
}

// failed returns the error in p or, if there is none, err.
func failed(p *atomic.Pointer[error], err error) error {
	if e := p.Load(); e != nil {
		return *e
	}
	return err
}

func (c *faultyConn) Read(p []byte) (int, error) {
	if c.readErr.Load() != nil {
		return 0, *c.readErr.Load()
	}
	n, err := c.Conn.Read(p)
	if n > 0 {
		return n, nil
	}
	return n, failed(&c.readErr, err)
}

func (c *faultyConn) Write(p []byte) (int, error) {
	if c.writeErr.Load() != nil {
		return 0, *c.writeErr.Load()
	}
	n, err := c.Conn.Write(p)
	if err == nil {
		return n, nil
	}
	return n, failed(&c.writeErr, err)
}

func (c *faultyConn) CloseWrite() error { return failed(&c.writeErr, closeWrite(c.Conn)) }

func (c *faultyConn) SyscallConn() (syscall.RawConn, error) {
	raw, err := c.Conn.(syscall.Conn).SyscallConn()
	return faultyRawConn{raw, c}, err
}

// A faultyRawConn is the raw connection of a faultyConn.
type faultyRawConn struct {
	syscall.RawConn
	conn *faultyConn
}

func (r faultyRawConn) Read(f func(uintptr) bool) error {
	return failed(&r.conn.readErr, r.RawConn.Read(f))
}

// TestBrokenConnection checks that a connection that breaks is closed and its
// slot is free, whatever breaks it at whatever point. Otherwise a client could
// take one slot after the other, until the gateway has none left. The limits
// are far longer than the test, except if the client only remains silent.
func TestBrokenConnection(t *testing.T) {
	for _, tr := range []struct {
		name   string
		points []point
		tls    []string // protocols offered in the TLS handshake; nil: no TLS
		unix   bool
		inetd  bool
	}{
		{name: "TCP", points: http1Points},
		{name: "UNIX", points: http1Points, unix: true},
		{name: "inetd", points: http1Points, inetd: true},
		{name: "TLS", points: append(slices.Clone(handshakePoints), http1Points...), tls: []string{"http/1.1"}},
		{name: "HTTP2", points: append(slices.Clone(handshakePoints), http2Points...), tls: []string{"h2"}},
	} {
		for _, f := range breakages {
			for _, p := range tr.points {
				if f.tlsOnly && (tr.tls == nil || p.raw) || f.writes && (!p.big || slices.Contains(tr.tls, "h2")) || f.reads && p.big {
					continue
				}
				t.Run(tr.name+"/"+f.name+"/"+p.name, func(t *testing.T) {
					t.Parallel()
					limit := time.Hour
					if f.act == nil {
						limit = 50 * time.Millisecond
					}
					for {
						st, freed := newBreakingServer(t, limit)
						var raw net.Conn
						var c *clientconn.Conn
						if tr.unix {
							c, raw = connPair(t, ipc.Connection{ID: 1, Network: ipc.Unix}, st.limits.Stall)
						} else {
							raw, c = st.pair()
							c.ID, c.Stall = 1, st.limits.Stall
						}
						broken := &faultyConn{Conn: c.Conn}
						c.Conn = broken
						added := st.table.Add(1)
						c.Closed = func() { st.closed(added, 0) }
						if tr.tls != nil {
							added.Attach(c, c, nil)
							go st.handshake(c, added, tls.Server(c, serverConfig(t, tr.tls)))
						} else {
							st.inetd = tr.inetd
							go st.newHTTP1Conn(c, c, added).Serve()
						}
						err := p.reach(raw, tr.tls)
						if err == nil && f.act != nil {
							f.act(raw, broken)
						}
						awaitFreed(t, c, broken, freed)
						if err == nil {
							return
						}
						if f.act != nil || limit > 10*time.Second {
							t.Fatal(err)
						}
						limit *= 4 // the limit has ended before the slow machine has reached the point
					}
				})
			}
		}
	}
}

// reach makes the client of a connection send and receive everything up to the
// point. If protocols is not nil, the client uses TLS.
func (p point) reach(client net.Conn, protocols []string) error {
	if protocols != nil && !p.raw {
		secure := tls.Client(client, &tls.Config{InsecureSkipVerify: true, NextProtos: protocols})
		if err := secure.Handshake(); err != nil {
			return err
		}
		client = secure
	}
	_, err := io.WriteString(client, p.send)
	if err == nil {
		err = awaitText(client, p.wait)
	}
	if err == nil && p.big {
		_, err = io.ReadFull(client, make([]byte, 100))
	}
	return err
}

// awaitFreed waits until the slot of a connection is free, and checks that the
// connection is closed.
func awaitFreed(t *testing.T, c *clientconn.Conn, broken *faultyConn, freed <-chan bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; broken.interrupt() {
		select {
		case <-freed:
		case <-time.After(5 * time.Millisecond):
			if time.Now().After(deadline) {
				t.Fatal("the slot is not free")
			}
			continue
		}
		break
	}
	if err := c.SetDeadline(time.Time{}); err == nil {
		t.Error("the descriptor is still open")
	}
}

// serverConfig returns the configuration of a TLS server with a new
// certificate.
func serverConfig(t *testing.T, protocols []string) *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	leaf, _ := selfSigned(t, key)
	return &tls.Config{NextProtos: protocols, Certificates: []tls.Certificate{{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}}}
}

// awaitText reads from c until the input contains text.
func awaitText(c net.Conn, text string) error {
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	var all []byte
	for buf := make([]byte, 4096); !strings.Contains(string(all), text); {
		n, err := c.Read(buf)
		if err != nil {
			return err
		}
		all = append(all, buf[:n]...)
	}
	return nil
}

// newBreakingServer returns a server with the given time limit for silent
// clients. The returned channel gets a value when the worker reports that
// connection 1 is closed.
func newBreakingServer(t *testing.T, limit time.Duration) (*testServer, chan bool) {
	limits := testLimits
	limits.ReadHeader, limits.ReadBody, limits.Idle, limits.Stall = limit, limit, limit, limit
	st := newTestServer(t, work.Setup{Limits: limits}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "handler")
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit))
		_, err := io.Copy(io.Discard, r.Body)
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		switch {
		case err != nil:
			w.WriteHeader(http.StatusBadRequest)
		case r.URL.Path == "/wait":
			select {
			case <-r.Context().Done():
			case <-time.After(50 * time.Millisecond):
			}
		case r.URL.Path == "/big":
			w.Header().Set("Content-Length", "1000000000000")
			for piece := make([]byte, 64<<10); err == nil; {
				_, err = w.Write(piece)
			}
			return
		}
		_, _ = io.WriteString(w, "answer")
	}))
	freed := make(chan bool, 1)
	st.report = func(m ipc.Message) error {
		if _, done := m.(*work.ConnectionDone); done {
			freed <- true
		}
		return nil
	}
	return st, freed
}
