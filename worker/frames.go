package worker

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"schedrestd/ipc"
)

// frames is a connection with HTTP/2 on it, below which is TLS. http.Server
// reports nothing about a client that breaks the rules, so the frames of both
// directions are followed here. Three things count as malformed requests:
//
//   - an error that the client is told of: the code of GOAWAY for the
//     connection, of RST_STREAM for a stream (RFC 9113, 7);
//   - a header block over the limit, which http.Server answers with 431;
//   - more control frames than the client's requests account for. This also
//     closes the connection.
//
// http.Server must not see that it is a *tls.Conn, or would read and write that one itself. It takes this for a
// client that begins with HTTP/2 without TLS.
type frames struct {
	net.Conn
	wrong   func()      // called for each offence
	paused  func() bool // reports whether the client has to wait for its offences
	flooded func()      // called before the connection is closed for a flood

	read int  // bytes of the preface that came, and were right
	bad  bool // … or one was not

	in       scanner
	out      scanner
	budget   *budget
	offended atomic.Bool
}

// newFrames returns c as http.Server is to see it. Its client's offences are
// reported to o.
func newFrames(c net.Conn, o *offences) *frames {
	raw := connOf(c)
	f := &frames{Conn: c, budget: newBudget(time.Now())}
	f.wrong = func() {
		o.counts.frames.Add(1)
		o.malformed(raw.id)
	}
	f.paused = func() bool {
		of := o.watch.of(raw.id)
		return of != nil && o.watch.paused(of) > 0
	}
	f.flooded = func() {
		if o.mayTell() {
			slog.Info("HTTP/2 connection closed", "peer", raw.peer.String(), "cause", errFlood)
		}
	}
	return f
}

// NetConn is the connection below.
func (f *frames) NetConn() net.Conn { return f.Conn }

// preface is what a client begins with (RFC 9113, 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// The errors with which http.Server closes a connection.
var (
	errFlood  = errors.New("more control frames than its requests account for")
	errWaiter = errors.New("its client has to wait")
)

// Read reads, compares the first bytes with the preface, and charges the
// frames to the budget.
func (f *frames) Read(p []byte) (int, error) {
	// During a pause requests are answered with 429. Frames that never become
	// a request would be read all the same.
	if f.offended.Load() && f.paused() {
		return 0, errWaiter
	}
	n, err := f.Conn.Read(p)
	i := 0
	for ; i < n && !f.bad && f.read < len(preface); i++ {
		if f.bad = p[i] != preface[f.read]; f.bad {
			f.offend()
		}
		f.read++
	}
	if err != nil && isGarbled(err) {
		f.offend()
	}
	if f.bad {
		return n, err
	}
	cost := 0
	f.in.scan(p[i:n], noPayload, func(head []byte) { cost += f.budget.costOf(head) })
	if !f.budget.spend(time.Now(), cost) {
		f.offend()
		f.flooded()
		return 0, errFlood
	}
	return n, err
}

// Write writes what http.Server says, one goroutine at a time.
func (f *frames) Write(p []byte) (int, error) {
	f.look(p)
	return f.Conn.Write(p)
}

// look follows the frames in p.
func (f *frames) look(p []byte) {
	f.out.scan(p, answerPayload, func(head []byte) {
		f.budget.earn(head)
		if isRefusal(head) {
			f.offend()
		}
	})
}

func (f *frames) offend() {
	f.offended.Store(true)
	f.wrong()
}

// isRefusal reports whether a frame of the server refuses what no valid client
// sends.
func isRefusal(head []byte) bool {
	switch head[3] {
	case resetFrame, goAwayFrame:
		return len(head) >= 13 && isWrongCode(binary.BigEndian.Uint32(head[len(head)-4:]))
	case headersFrame:
		return isTooLarge(head[9:])
	}
	return false
}

// isTooLarge reports whether a header block begins with status 431. The
// encoder has no dynamic table (http2), so that it is always a literal with
// the name of one of the static table's rows 8 to 14 (RFC 7541, 6.2.2), after
// at most two changes of the table's size.
func isTooLarge(block []byte) bool {
	for len(block) > 0 && block[0]&0xe0 == 0x20 {
		block = block[1:]
	}
	return len(block) > 0 && 8 <= block[0] && block[0] <= 14 && bytes.HasPrefix(block[1:], []byte("\x03431"))
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
