package worker

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"schedrestd/auth"
	"schedrestd/ipc"
)

// voice is a connection with HTTP/1 on it, plain or below TLS, as http.Server has it. It
// follows how far a request has come, so that whoever began one gets an answer, one only, and
// never another one than the handlers' or a refusal of ours.
type voice struct {
	net.Conn
	peer auth.Peer
	own  *refusals

	mu        sync.Mutex
	answering bool        // from the call of the handler until its answer is out
	refused   bool        // the last word was said
	fresh     bool        // nothing was read yet but empty lines
	blank     int         // as many
	begun     time.Time   // when the first byte of a header was read; zero: none was
	hasBegun  atomic.Bool // the same, for who must not wait for mu
	line      bool        // a line of it was read whole
	ending    int         // bytes of the empty line that ends it, after a line's end, which is the first
	whole     bool        // all of it was read: its handler is about to be called
	run       int         // bytes read since the last line feed
	deadlines int         // set since the last answer, while nothing was read
	room      int         // bytes that are asked for at most: fewer mean that a part is in the buffer
	late      bool        // a deadline passed
	ended     bool        // the client sends no more
}

func (r *refusals) speak(c net.Conn, peer auth.Peer) *voice {
	return &voice{Conn: c, peer: peer, own: r, fresh: true}
}

// NetConn is the connection below.
func (v *voice) NetConn() net.Conn { return v.Conn }

// Read reads, and notes what of a header has come. Empty lines before the first request are passed over, as RFC 9112, 2.2, asks,
// since http.Server does not; later ones it takes after a body, and refuses where they would be in the middle of what it reads.
//
// While a request is answered, http.Server reads one byte in the background and cancels the request at any error. The end of the
// client's data is not one: it waits there until the client is gone.
func (v *voice) Read(p []byte) (n int, err error) {
	if v.isOver(len(p)) {
		return 0, io.EOF
	}
	for {
		n, err = v.Conn.Read(p)
		if skipped := v.skip(p[:n]); skipped == 0 {
			break
		} else if n = copy(p, p[skipped:n]); n > 0 || err != nil {
			break
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err == io.EOF && len(p) == 1 && (v.answering || v.whole) && !v.refused {
		if raw := connOf(v.Conn); raw != nil {
			v.mu.Unlock()
			err = raw.awaitGone()
			v.mu.Lock()
		}
	}
	if v.answering || v.refused {
		return n, err
	}
	v.late = errors.Is(err, os.ErrDeadlineExceeded)
	if v.ended = err != nil && !v.late; v.ended && isGarbled(err) {
		v.own.offences.report(idOf(v.Conn), ipc.WrongRequest)
	}
	if n > 0 && v.fresh && p[0] == recordHandshake {
		v.refuse(isTLS)
		return 0, io.EOF
	}
	v.note(p[:n])
	return n, err
}

// mostBlank is how many empty lines before the first request are passed over.
const mostBlank = 4

// skip is how many bytes of p are empty lines before the first request.
func (v *voice) skip(p []byte) (n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for v.fresh && v.blank < mostBlank {
		switch {
		case bytes.HasPrefix(p[n:], []byte("\r\n")):
			n += 2
		case bytes.HasPrefix(p[n:], []byte("\n")):
			n++
		default:
			return n
		}
		v.blank++
	}
	return n
}

// isOver tells whether the last word was said, when so many bytes are asked for (0: none). Fewer
// than there is room for come behind a part of a header that is in the buffer since the last request.
func (v *voice) isOver(asked int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.room = max(v.room, asked); asked > 0 && asked < v.room && !v.answering && v.begun.IsZero() {
		v.begun, v.line = time.Now(), true
		v.hasBegun.Store(true)
	}
	return v.refused
}

// recordHandshake is how a TLS connection begins, and no request does (RFC 8446, 5.1).
const recordHandshake = 22

// note looks at bytes of a header. Empty lines before one are nobody's (RFC 9112, 2.2).
func (v *voice) note(p []byte) {
	if len(p) == 0 {
		return
	}
	v.fresh = false
	if v.begun.IsZero() {
		if p = bytes.TrimLeft(p, "\r\n"); len(p) == 0 {
			return
		}
		v.begun = time.Now()
		v.hasBegun.Store(true)
	}
	for i := 0; i < len(p) && !v.whole; i++ {
		switch {
		case p[i] == '\n' && v.ending > 0:
			v.whole = true
		case p[i] == '\n', p[i] == '\r' && v.ending == 1:
			v.ending++
		default:
			v.ending = 0
		}
	}
	if i := bytes.LastIndexByte(p, '\n'); i >= 0 {
		v.line, v.run = true, len(p)-i-1
	} else {
		v.run += len(p)
	}
}

// SetReadDeadline is called once when http.Server begins to wait for the next request, and again
// when a part of it is there: that may be in its buffer since before the last answer was out.
func (v *voice) SetReadDeadline(t time.Time) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.refused {
		return nil
	}
	if v.deadlines++; !v.answering && !v.fresh && v.deadlines == 2 && v.begun.IsZero() {
		v.begun, v.line = time.Now(), true
		v.hasBegun.Store(true)
	}
	return v.Conn.SetReadDeadline(t)
}

// begin is called when the handler is. It reports false for a request that was refused already.
func (v *voice) begin() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answering = true
	return !v.refused
}

// rest is called when an answer is out and the next request may come.
func (v *voice) rest() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.hasBegun.Store(false)
	v.answering, v.begun, v.line, v.run, v.deadlines, v.late = false, time.Time{}, false, 0, 0, false
	v.ending, v.whole = 0, false
	if f, ok := v.Conn.(*front); ok {
		f.rest()
	}
}

// Write writes an answer of the handler's, and a refusal in place of any other.
func (v *voice) Write(p []byte) (int, error) {
	v.mu.Lock()
	if v.answering && !v.refused {
		v.mu.Unlock()
		return v.Conn.Write(p)
	}
	defer v.mu.Unlock()
	why := instead(p)
	switch {
	case why == headerTooLong && !v.line && v.run >= v.own.header:
		why = lineTooLong
	case why == malformed && v.late: // http.Server parses the part that came
		why = lateHeader
	case why == malformed && v.ended:
		why = cutOff
	}
	v.refuse(why)
	return len(p), nil
}

// refuse says why, once, and ends the connection; v.mu is held. It waits for nobody: a
// client that reads nothing must not hold up whoever calls this.
func (v *voice) refuse(why refusal) {
	if v.refused {
		return
	}
	v.own.offences.counts.unread.Add(1)
	if why.wrong() {
		v.own.offences.report(idOf(v.Conn), ipc.WrongRequest)
	}
	begun := v.begun
	if begun.IsZero() {
		begun = time.Now()
	}
	v.part(v.own.answer(why, v.peer, begun))
}

// part ends the connection with the last words; v.mu is held. A client that is still sending
// gets a moment to read them, since to close with something unread is to reset.
func (v *voice) part(words []byte) {
	v.refused = true
	_ = v.Conn.SetReadDeadline(time.Now()) // wakes a Read
	go func() {
		if _, err := v.Conn.Write(words); err == nil && v.halfClose() == nil {
			_ = v.Conn.SetReadDeadline(time.Now().Add(lastRead))
			_, _ = io.CopyN(io.Discard, v.Conn, 256<<10)
		}
		_ = v.Conn.Close()
	}()
}

// lastRead is how long a client that was refused may take to read it.
const lastRead = 500 * time.Millisecond

// giveWay ends the connection for somebody who waits, unless a request on it is being answered, or is about to be. It
// reports whether it did.
func (v *voice) giveWay() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.answering, v.whole:
		return false
	case v.refused:
	case v.begun.IsZero():
		v.refused = true // what comes now came too late
		_ = v.Conn.Close()
	default:
		v.refuse(lateHeader)
	}
	return true
}

// CloseWrite says that no more comes.
func (v *voice) CloseWrite() error {
	if v.isOver(0) {
		return nil
	}
	return v.halfClose()
}

func (v *voice) halfClose() error {
	if half, ok := v.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close closes the connection. Who has begun a request is told.
func (v *voice) Close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.refused: // and is being closed
		return nil
	case v.answering || v.begun.IsZero() || v.ended:
	case v.late:
		v.refuse(lateHeader)
		return nil
	default:
		v.refuse(stopping)
		return nil
	}
	v.refused = true
	return v.Conn.Close()
}

// voiceKey is where spoken finds the voice of a request.
type voiceKey struct{}

// spoken tells the connection of a request that its handler runs.
func spoken(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, ok := r.Context().Value(voiceKey{}).(*voice)
		switch {
		case !ok: // HTTP/2, whose answers are not a text on the connection
		case r.ProtoMajor != 1: // "PRI * HTTP/2.0"
			v.mu.Lock()
			v.refuse(noVersion)
			v.mu.Unlock()
			panic(http.ErrAbortHandler)
		case !v.begin():
			panic(http.ErrAbortHandler)
		}
		h.ServeHTTP(w, r)
	})
}

// rested is for http.Server.ConnState.
func rested(c net.Conn, state http.ConnState) {
	if v, ok := c.(*voice); ok && state == http.StateIdle {
		v.rest()
	}
}

// shake makes the handshake of an https:// connection that has HTTP/1 or HTTP/2 on it, and puts it
// where http.Server accepts it. A client that speaks plain HTTP is told so.
func (s *server) shake(raw *conn, secured *tls.Conn, limit time.Duration) {
	_ = raw.SetReadDeadline(time.Now().Add(limit))
	ours := new(shaken)
	err := secured.HandshakeContext(context.WithValue(s.shaking, shakenKey{}, ours))
	_ = raw.SetReadDeadline(time.Time{})
	plain, ok := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case err == nil && secured.ConnectionState().NegotiatedProtocol == "h2":
		s.queue2.put(newFrames(secured, s.offences))
	case err == nil:
		s.queue.put(s.own.speak(secured, raw.peer))
	case ok && plain.Conn != nil && beginsLikeHTTP(plain.RecordHeader[:]):
		v := s.own.speak(raw, raw.peer)
		v.mu.Lock()
		defer v.mu.Unlock()
		v.refuse(isPlain)
	case s.shaking.Err() != nil:
		_ = raw.Close()
	default:
		s.counts.handshakes.Add(1)
		slog.Info("TLS handshake failed", "peer", raw.peer.String(), "error", err)
		if what, wrong := blames(err); wrong && !ours.unsigned {
			s.offences.report(raw.id, what)
		}
		_ = raw.Close()
	}
}

// shaken is what is known of a handshake beside its error.
type shaken struct{ unsigned bool } // the keeper did not sign it: no fault of the client's

// shakenKey is where a handshake's context has it.
type shakenKey struct{}

// beginsLikeHTTP tells whether what should be the header of a TLS record is a method in capital
// letters.
func beginsLikeHTTP(b []byte) bool {
	for _, c := range b[:3] {
		if c < 'A' || c > 'Z' {
			return false
		}
	}
	return true
}
