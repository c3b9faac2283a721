package worker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"schedrestd/gateway/worker/clientconn"
	"schedrestd/gateway/worker/keys"
)

// An http2Conn is an HTTP/2 connection over TLS from which net/http reads.
// net/http limits what it stores for a client: streams and their windows,
// header blocks, handlers of streams that were reset, and acknowledgements that
// the client does not read. But two problems remain. To solve them, http2Conn
// examines the frames in both directions:
//
//   - net/http accepts any number of frames that make no progress: SETTINGS,
//     PRIORITY and WINDOW_UPDATE frames, frames of unknown types, nearly empty
//     DATA frames, and DATA frames on closed streams, which it also answers.
//     http2Conn subtracts them from a budget, and closes the connection when the
//     budget is used up. A limit on bytes would not help, because an ordinary
//     body has more bytes than a flood of frames.
//   - net/http does not report clients that violate the protocol. Such a client
//     gets an error code: in GOAWAY for the connection, or in RST_STREAM for a
//     stream (RFC 9113, 7). If its header block exceeds the limit, it gets status
//     431. http2Conn counts these answers as offences (see inspectSent).
//
// http.Server must not find the *tls.Conn inside http2Conn, because it would
// then bypass http2Conn. If http.Server finds no *tls.Conn, it treats the
// connection as HTTP/2 with prior knowledge.
type http2Conn struct {
	net.Conn
	raw      *clientconn.Conn
	offences *offences

	prefaceRead int  // number of bytes of the preface that arrived and matched
	badPreface  bool // whether a byte of the preface did not match
	in, out     frameScanner
	budget      *budget
	offended    atomic.Bool
}

// newHTTP2Conn wraps c for net/http. It reports the client's offences to o.
func newHTTP2Conn(c net.Conn, o *offences) *http2Conn {
	return &http2Conn{Conn: c, raw: clientconn.Of(c), offences: o, budget: newBudget(time.Now())}
}

// NetConn returns the wrapped connection.
func (c *http2Conn) NetConn() net.Conn { return c.Conn }

// preface is what each client sends first (RFC 9113, 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// Errors with which the server closes a connection.
var (
	errFlood   = errors.New("more frames than its requests account for")
	errBlocked = errors.New("its client has to wait")
)

// Read compares the first bytes with the preface. It subtracts the cost of the
// frames after the preface from the budget.
func (c *http2Conn) Read(p []byte) (int, error) {
	// While a client is blocked, its requests are answered with 429. But
	// without this check, frames that never become a request would still be
	// read.
	if c.offended.Load() && c.isPaused() {
		return 0, errBlocked
	}
	n, err := c.Conn.Read(p)
	if err != nil && keys.IsGarbled(err) {
		c.offend()
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
		if c.offences.mayLog() {
			slog.Info("HTTP/2 connection closed", "peer", c.raw.Peer.String(), "cause", errFlood)
		}
		return 0, errFlood
	}
	return n, err
}

// Write sends the output of net/http. Only one goroutine at a time calls it.
func (c *http2Conn) Write(p []byte) (int, error) {
	c.out.scan(p, c.inspectSent)
	return c.Conn.Write(p)
}

// inspectSent records a frame that net/http sends in the client's budget. If the
// frame refuses malformed input, inspectSent counts an offence.
func (c *http2Conn) inspectSent(f frame) {
	c.budget.sent(f)
	if f.kind == resetFrame && isOffence(f.code(0)) || f.kind == goAwayFrame && isOffence(f.code(4)) ||
		f.kind == headersFrame && isTooLarge(f.payload) {
		c.offend()
	}
}

func (c *http2Conn) offend() {
	c.offended.Store(true)
	c.offences.counts.Frames.Add(1)
	c.offences.reportMalformed(c.raw.ID)
}

// isPaused reports whether the client is blocked for its offences.
func (c *http2Conn) isPaused() bool {
	state := c.offences.tracker.lookup(c.raw.ID)
	return state != nil && c.offences.tracker.blockedFor(state) > 0
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

// The types of the frames that are inspected (RFC 9113, section 6), and two
// flags.
const (
	dataFrame    = 0
	headersFrame = 1
	resetFrame   = 3
	goAwayFrame  = 7
	windowFrame  = 8

	endStream = 1
	isPadded  = 8
)

// A frame holds the part of an HTTP/2 frame that is inspected.
type frame struct {
	kind, flags byte
	stream      uint32
	length      int
	payload     []byte // first bytes of the payload, at most framePeek
}

// code returns the error code at an offset in the payload. It returns 0 if the
// frame is too short.
func (f frame) code(offset int) uint32 {
	if len(f.payload) < offset+4 {
		return 0
	}
	return binary.BigEndian.Uint32(f.payload[offset:])
}

const (
	frameHeader = 9 // in bytes
	framePeek   = 8 // number of inspected bytes of a payload
)

// A frameScanner finds the frames in one direction of a connection, no matter
// how reads and writes split them.
type frameScanner struct {
	head [frameHeader + framePeek]byte
	have int // number of bytes in head
	skip int // remaining bytes of the frame's payload
}

// scan calls fn for each frame whose last inspected byte is in p.
func (s *frameScanner) scan(p []byte, fn func(frame)) {
	for len(p) > 0 {
		if s.skip > 0 {
			n := min(s.skip, len(p))
			s.skip, p = s.skip-n, p[n:]
			continue
		}
		want := frameHeader
		if s.have >= frameHeader {
			want += min(framePeek, s.length())
		}
		n := copy(s.head[s.have:want], p)
		s.have, p = s.have+n, p[n:]
		if s.have < frameHeader || s.have < frameHeader+min(framePeek, s.length()) {
			continue
		}
		fn(frame{s.head[3], s.head[4], binary.BigEndian.Uint32(s.head[5:]) &^ (1 << 31), s.length(), s.head[frameHeader:s.have]})
		s.skip, s.have = frameHeader+s.length()-s.have, 0
	}
}

// length returns the length of the frame's payload.
func (s *frameScanner) length() int { return int(s.head[0])<<16 | int(s.head[1])<<8 | int(s.head[2]) }

// http2Config returns the limits of an HTTP/2 connection. Each stream carries
// one request. A connection may have at most 100 concurrent requests, and at
// most a quarter of the number that this worker answers concurrently. The
// client must delay further requests.
func http2Config(requests uint32) *http.HTTP2Config {
	if requests == 0 {
		requests = 100
	}
	return &http.HTTP2Config{
		MaxConcurrentStreams:          int(max(1, min(requests/4, 100))),
		MaxReadFrameSize:              64 << 10,
		MaxReceiveBufferPerConnection: 1 << 20,
		MaxReceiveBufferPerStream:     256 << 10,
		SendPingTimeout:               30 * time.Second, // otherwise a client that has vanished would hold a slot
		PingTimeout:                   15 * time.Second,
		MaxEncoderHeaderTableSize:     1, // no dynamic table, so that isTooLarge can read the status of an answer
	}
}
