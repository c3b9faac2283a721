package http2server

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Client learns what happens on a connection, and knows the client at its other
// end. Its methods may be called concurrently.
type Client interface {
	// Idle is called when no request is being answered any longer.
	Idle()
	// Offended is called when the client has broken the protocol.
	Offended()
	// Refused is called before the connection is closed because of its frames.
	Refused(err error)
	// ReadFailed is called when a read fails.
	ReadFailed(err error)
	// IsBlocked reports whether the requests of the client are refused at
	// present.
	IsBlocked() bool
}

// A conn is an HTTP/2 connection over TLS from which net/http reads.
// net/http limits what it stores for a client: streams and their windows,
// header blocks, handlers of streams that were reset, and acknowledgements that
// the client does not read. But three problems remain. To solve them, conn
// examines the frames in both directions:
//
//   - net/http accepts any number of frames that make no progress: SETTINGS,
//     PRIORITY and WINDOW_UPDATE frames, frames of unknown types, nearly empty
//     DATA frames, and DATA frames on closed streams, which it also answers.
//     conn subtracts them from a budget, and closes the connection when the
//     budget is used up. A limit on bytes would not help, because an ordinary
//     body has more bytes than a flood of frames.
//   - net/http does not report clients that violate the protocol. Such a client
//     gets an error code: in GOAWAY for the connection, or in RST_STREAM for a
//     stream (RFC 9113, 7). If its header block exceeds the limit, it gets status
//     431. conn counts these answers as offences (see inspectSent).
//   - net/http starts its timer for idle connections again when it closes the
//     streams of a connection that has ended. Until the timer expires, it keeps
//     the memory of the connection, and a client could open connections faster.
//     So net/http gets no IdleTimeout. When a connection has been idle for too
//     long, Read returns a GOAWAY frame as if the client had sent it. Then
//     net/http sends a GOAWAY frame, too, and closes the connection when no
//     stream is left. A client can keep a stream by giving it no window if
//     net/http itself refuses its request. So Read fails after the same time again.
//
// http.Server must not find the *tls.Conn inside conn, because it would then
// bypass conn. If http.Server finds no *tls.Conn, it treats the
// connection as HTTP/2 with prior knowledge.
type conn struct {
	net.Conn
	ctx    context.Context // of all its requests
	client Client
	idle   time.Duration // limit for the time without a request

	prefaceRead int    // number of bytes of the preface that arrived and matched
	badPreface  bool   // whether a byte of the preface did not match
	leaving     bool   // whether the connection has been idle for too long
	goAway      string // rest of the frame that Read returns therefore
	in, out     frameScanner
	budget      *budget
	offended    atomic.Bool

	mu       sync.Mutex // guards requests, the bodies in the budget, and the deadlines of each stream
	requests int        // number of requests that the handler answers; without one, the connection is idle
}

func newConn(ctx context.Context, c net.Conn, client Client, idle time.Duration) *conn {
	v := &conn{Conn: c, ctx: ctx, client: client, idle: idle}
	v.budget = newBudget(time.Now(), &v.mu)
	return v
}

// preface is what each client sends first (RFC 9113, 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// clientLeaves is a GOAWAY frame without an error.
const clientLeaves = "\x00\x00\x08\x07\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00"

// addRequests changes the number of requests by n. If none is left, it starts the
// limit for the time without a request.
func (c *conn) addRequests(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.requests += n; c.requests {
	case 0:
		_ = c.Conn.SetReadDeadline(time.Now().Add(c.idle))
	case n: // the first
		_ = c.Conn.SetReadDeadline(time.Time{})
	}
}

// stateChanged is called when the preface has arrived, and when no stream is left.
func (c *conn) stateChanged(state http.ConnState) {
	if state == http.StateIdle {
		c.addRequests(0)
		c.client.Idle()
	}
}

// Errors with which the server closes a connection.
var (
	errFlood   = errors.New("more frames than its requests account for")
	errBlocked = errors.New("its client has to wait")
)

// Read compares the first bytes with the preface. It subtracts the cost of the
// frames after the preface from the budget. When the connection has been idle
// for too long, Read returns clientLeaves.
func (c *conn) Read(p []byte) (int, error) {
	// While a client is blocked, its requests are answered with 429. But
	// without this check, frames that never become a request would still be
	// read.
	if c.offended.Load() && c.client.IsBlocked() {
		return 0, errBlocked
	}
	if c.goAway != "" {
		n := copy(p, c.goAway)
		c.goAway = c.goAway[n:]
		return n, nil
	}
	n, err := c.Conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) && c.prefaceRead == len(preface) && c.in.isComplete() && !c.leaving {
		c.leaving, c.goAway = true, clientLeaves
		c.addRequests(0)
		return c.Read(p)
	}
	if err != nil {
		c.client.ReadFailed(err)
	}
	i := 0
	for ; i < n && !c.badPreface && c.prefaceRead < len(preface); i++ {
		if c.badPreface = p[i] != preface[c.prefaceRead]; c.badPreface {
			c.offend()
		}
		c.prefaceRead++
	}
	if c.badPreface {
		return n, err
	}
	cost := 0
	c.in.scan(p[i:n], func(f frame) { cost += c.budget.received(f) })
	if !c.budget.spend(time.Now(), cost) {
		c.offend()
		c.client.Refused(errFlood)
		return 0, errFlood
	}
	return n, err
}

// Write sends the output of net/http. Only one goroutine at a time calls it.
func (c *conn) Write(p []byte) (int, error) {
	c.out.scan(p, c.inspectSent)
	return c.Conn.Write(p)
}

// inspectSent records a frame that net/http sends in the client's budget. If the
// frame refuses malformed input, inspectSent counts an offence.
func (c *conn) inspectSent(f frame) {
	c.budget.sent(f)
	if f.kind == resetFrame && isOffence(f.code(0)) || f.kind == goAwayFrame && isOffence(f.code(4)) ||
		f.kind == headersFrame && isTooLarge(f.payload) {
		c.offend()
	}
}

func (c *conn) offend() {
	c.offended.Store(true)
	c.client.Offended()
}

// isOffence reports whether an error code is sent only to clients that break
// the protocol. STREAM_CLOSED and REFUSED_STREAM are also sent to honest
// clients: those that send on a stream that has just ended, or that open too
// many streams before they learn of the limit.
func isOffence(code uint32) bool {
	switch code {
	case 0x1, 0x3, 0x6, 0x9, 0xb: // PROTOCOL_ERROR, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, COMPRESSION_ERROR, ENHANCE_YOUR_CALM
		return true
	}
	return false
}

// isTooLarge reports whether a header block begins with status 431. The encoder
// has no dynamic table (see http2Config). So the status is a literal whose name
// is in one of rows 8 to 14 of the static table (RFC 7541, 6.2.2). At most two
// changes of the table's size can precede the status.
func isTooLarge(block []byte) bool {
	for len(block) > 0 && block[0]&0xe0 == 0x20 {
		block = block[1:]
	}
	return len(block) > 0 && 8 <= block[0] && block[0] <= 14 && bytes.HasPrefix(block[1:], []byte("\x03431"))
}
