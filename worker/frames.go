package worker

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"

	"schedrestd/ipc"
)

// frames is a connection with HTTP/2 on it, below which is TLS. HTTP/2 says what a client did wrong in two frames, by a
// code: GOAWAY of the connection, RST_STREAM of a stream (RFC 9113, 7). http.Server tells of it nobody but its
// log, and the client: so the heads of the frames that it writes are looked at here.
//
// http.Server must not see that it is a *tls.Conn, or would read and write that one itself. It takes this for a
// client that begins with HTTP/2 without TLS.
type frames struct {
	net.Conn
	wrong func() // called for each offence

	read int  // bytes of the preface that came, and were right
	bad  bool // … or one was not

	head [17]byte // of a frame that is being written, with the code of one of the two
	have int      // bytes of head
	rest int      // bytes of the frame that are of no interest
}

// newFrames is c, whose client is told of to o.
func newFrames(c net.Conn, o *offences) *frames {
	id := idOf(c)
	return &frames{Conn: c, wrong: func() { o.counts.frames.Add(1); o.malformed(id) }}
}

// NetConn is the connection below.
func (f *frames) NetConn() net.Conn { return f.Conn }

// preface is what a client begins with (RFC 9113, 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// Read reads, and holds the first bytes against the preface.
func (f *frames) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	for i := 0; i < n && !f.bad && f.read < len(preface); i++ {
		if f.bad = p[i] != preface[f.read]; f.bad {
			f.wrong()
		}
		f.read++
	}
	if err != nil && isGarbled(err) {
		f.wrong()
	}
	return n, err
}

// Write writes what http.Server says, one goroutine at a time.
func (f *frames) Write(p []byte) (int, error) {
	f.look(p)
	return f.Conn.Write(p)
}

// The frames that have a code, and where it ends in each.
const (
	resetFrame, resetEnd   = 3, 9 + 4
	goAwayFrame, goAwayEnd = 7, 9 + 8
)

// look follows the frames in p.
func (f *frames) look(p []byte) {
	for len(p) > 0 {
		if f.rest > 0 {
			n := min(f.rest, len(p))
			f.rest, p = f.rest-n, p[n:]
			continue
		}
		end := f.end()
		n := copy(f.head[f.have:end], p)
		f.have, p = f.have+n, p[n:]
		if f.have < f.end() { // more of it, now that its kind is known, or the next piece
			continue
		}
		if f.have > 9 && isWrongCode(binary.BigEndian.Uint32(f.head[f.have-4:f.have])) {
			f.wrong()
		}
		length := int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
		f.rest, f.have = 9+length-f.have, 0
	}
}

// end is how many bytes of the frame's beginning are wanted.
func (f *frames) end() int {
	switch {
	case f.have < 9:
	case f.head[3] == resetFrame:
		return resetEnd
	case f.head[3] == goAwayFrame:
		return goAwayEnd
	}
	return 9
}

// isWrongCode tells whether no client that means well is told that code. One that sends on in a stream which has just ended
// (STREAM_CLOSED), or opens one too many before it was told of the limit (REFUSED_STREAM), does.
func isWrongCode(code uint32) bool {
	switch code {
	case 0x1, 0x3, 0x6, 0x9, 0xb: // PROTOCOL_ERROR, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, COMPRESSION_ERROR, ENHANCE_YOUR_CALM
		return true
	}
	return false
}

// isGarbled tells whether err is about what came within TLS, and is none of its own: only then crypto/tls sends an
// alert, and calls that a local error. What breaks a connection is another one.
func isGarbled(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "local error"
}

// blames tells what a client did whose handshake failed with err, if it did anything. It did not when the connection broke or
// took too long, as that of a load balancer does that looks whether somebody is there; or when it is
// the client who turned away: he sent an alert, most often because he does not know who signed our certificate.
func blames(err error) (what ipc.Wrong, wrong bool) {
	if isGarbled(err) {
		return ipc.WrongRequest, true
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok { // his certificate is expired, or of nobody's
		return ipc.WrongCredential, true
	}
	if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, false
	}
	return ipc.WrongRequest, true
}
