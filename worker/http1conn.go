package worker

import (
	"bytes"
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
	"schedrestd/http1"
)

// http1Conn is a connection with HTTP/1 on it, plain or below TLS, as
// http.Server has it. Its lexer decides where requests begin and end, and
// http.Server gets a request only: its head when all of it is there, its body
// as it comes, and of the next one nothing before this one is answered. So
// http.Server never has to refuse anything, and every request that was begun
// gets one answer, from the handlers or from here.
type http1Conn struct {
	net.Conn
	peer auth.Peer
	own  *refusals

	begins atomic.Bool // a request has begun, and is not answered; for those that must not wait for mu

	mu        sync.Mutex // guards what follows
	lexer     http1.Lexer
	in        []byte    // read and not passed on
	ready     int       // bytes of in that may be passed on
	broken    error     // why the body can't be read on
	begun     time.Time // when the current request began; zero: it has not
	kept      bool      // a request was answered before
	answering bool      // from the call of the handler until its answer is out
	refused   bool      // the last answer was given, or the connection closed
	ended     bool      // the client sends no more
	cut       bool      // … and sent a part of a body
}

// wrap makes an http1Conn of c.
func (r *refusals) wrap(c net.Conn, peer auth.Peer) *http1Conn {
	return &http1Conn{Conn: c, peer: peer, own: r, lexer: http1.Lexer{MaxHead: r.maxHead, MaxBody: r.maxBody, Typed: r.typed}}
}

// NetConn returns the connection below.
func (c *http1Conn) NetConn() net.Conn { return c.Conn }

// Read reads the current request for http.Server. When all of that was read
// it waits until the client is gone: http.Server reads in the background while
// a request is answered, and cancels it at any error. A client that sends no
// more is not gone.
func (c *http1Conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.refused:
			return 0, io.EOF
		case c.ready > 0:
			return c.pass(p), nil
		case c.broken != nil:
			return 0, c.broken
		}
		read := c.Conn.Read
		if c.lexer.Done() {
			read = c.awaitGone
		}
		c.mu.Unlock()
		n, err := read(p)
		c.mu.Lock()
		if n, err = c.take(p, n, err); n > 0 || err != nil {
			return n, err
		}
	}
}

// awaitGone is a Read that returns when the client can neither send nor
// receive any more, or at the deadline.
func (c *http1Conn) awaitGone([]byte) (int, error) {
	return 0, connOf(c.Conn).awaitGone()
}

// take looks at n bytes that were read into p, and at the error behind them.
// It returns what Read should, or nothing when more has to be read; c.mu is
// held.
func (c *http1Conn) take(p []byte, n int, err error) (int, error) {
	if c.refused {
		return 0, io.EOF
	}
	if n > 0 {
		direct := len(c.in) == 0 // nearly always: then nothing is copied
		if direct {
			c.in = p[:n]
		} else {
			c.in = append(c.in, p[:n]...)
		}
		c.advance()
		n = c.pass(p)
		switch {
		case len(c.in) == 0:
			c.in = nil
		case direct:
			c.in = bytes.Clone(c.in)
		}
	}
	if n > 0 || err == nil { // the error comes again
		return n, nil
	}
	late := errors.Is(err, os.ErrDeadlineExceeded)
	c.cut = c.cut || !late && c.lexer.HeadDone() && !c.lexer.Done()
	inHead := !c.begun.IsZero() && !c.lexer.HeadDone()
	switch {
	case late && inHead:
		c.refuse(lateHeader)
	case inHead && (err == io.EOF || err == io.ErrUnexpectedEOF):
		c.refuse(cutOff)
	case !late && !c.answering:
		if c.ended = true; isGarbled(err) {
			c.own.offences.malformed(idOf(c.Conn))
		}
	}
	return 0, err
}

// pass passes on as much as p holds of what is ready; c.mu is held.
func (c *http1Conn) pass(p []byte) int {
	n := copy(p, c.in[:c.ready])
	c.in, c.ready = c.in[n:], c.ready-n
	return n
}

// advance has the lexer look at what was read; c.mu is held.
func (c *http1Conn) advance() {
	if !c.lexer.HeadDone() {
		c.in = c.in[c.lexer.Skip(c.in):]
		if len(c.in) == 0 {
			return
		}
		first := c.begun.IsZero()
		if first {
			c.begun = time.Now()
			c.begins.Store(true)
		}
		n, err := c.lexer.Head(c.in)
		switch {
		case err != nil:
			c.in = nil
			c.refuse(unreadable(err))
			return
		case n > 0:
			c.ready = n
		case first && c.kept: // http.Server waits for the first byte only
			_ = c.Conn.SetReadDeadline(c.begun.Add(c.own.readHeader))
			return
		default:
			return
		}
		if c.lexer.NeedsHost() {
			c.addHost()
		}
	}
	n, err := c.lexer.Body(c.in[c.ready:])
	c.ready += n
	if err != nil {
		c.broken = err
	}
}

// addHost adds the Host field that http.Server demands, with an empty value,
// behind the request line; c.mu is held.
func (c *http1Conn) addHost() {
	const field = "Host:\r\n"
	line := bytes.IndexByte(c.in, '\n') + 1
	c.in = bytes.Join([][]byte{c.in[:line], []byte(field), c.in[line:]}, nil)
	c.ready += len(field)
}

// SetReadDeadline sets it for the next Read.
func (c *http1Conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

// brokenBody returns why the body of the current request can't be read on; nil
// when it can.
func (c *http1Conn) brokenBody() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// begin is called before a handler. It reports false for a request that was
// refused already.
func (c *http1Conn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answering = true
	return !c.refused
}

// rest is called when an answer is out and the next request may come. It may
// be there already.
func (c *http1Conn) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.refused:
		return
	case c.cut: // http.Server would wait for another request
		_ = c.closeNow()
		return
	case !c.lexer.Done() || c.ready > 0: // http.Server sees the end of the request elsewhere
		slog.Error("connection closed: two parsers of HTTP/1 disagree about the end of a request", "peer", c.peer.String())
		c.refused = true
		_ = c.Conn.Close()
		return
	}
	c.answering, c.kept, c.begun = false, true, time.Time{}
	c.begins.Store(false)
	if c.lexer.Next(); len(c.in) > 0 {
		c.advance()
	}
}

// Write writes an answer of the handlers.
func (c *http1Conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	if c.answering && !c.refused {
		c.mu.Unlock()
		return c.Conn.Write(p)
	}
	defer c.mu.Unlock()
	if !c.refused && !c.ended { // http.Server refuses what the lexer accepted
		line, _, _ := bytes.Cut(p, []byte("\r\n"))
		slog.Error("two parsers of HTTP/1 disagree about a request", "peer", c.peer.String(), "answer", string(line))
		c.refuse(unreadable(errDisagree))
	}
	return len(p), nil
}

// refuse answers with a refusal, once, and ends the connection; c.mu is held.
// It does not wait for the client, which may read nothing.
func (c *http1Conn) refuse(why refusal) {
	if c.refused {
		return
	}
	c.own.offences.counts.unread.Add(1)
	if why.wrong() {
		c.own.offences.malformed(idOf(c.Conn))
	}
	begun := c.begun
	if begun.IsZero() {
		begun = time.Now()
	}
	c.refused = true
	_ = c.Conn.SetReadDeadline(time.Now()) // wakes a Read
	go c.part(c.own.answer(why, c.peer, begun))
}

// part writes the last answer, if there is one, and closes the connection. A client that is still
// sending gets a moment to read the answer, since closing a connection with
// unread data resets it.
func (c *http1Conn) part(answer []byte) {
	var err error
	if len(answer) > 0 {
		_, err = c.Conn.Write(answer)
	}
	if err == nil && c.halfClose() == nil {
		_ = c.Conn.SetReadDeadline(time.Now().Add(lastRead))
		_, _ = io.CopyN(io.Discard, c.Conn, 256<<10)
	}
	_ = c.Conn.Close()
}

// lastRead is how long a client that was refused may take to read the answer.
const lastRead = 500 * time.Millisecond

// giveWay ends the connection for another one that waits, unless a request on
// it is being answered or is about to be. It reports whether it did. A client
// that has begun a request is told.
func (c *http1Conn) giveWay() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.refused:
	case c.answering, c.lexer.HeadDone():
		return false
	case c.begun.IsZero():
		c.closeNow()
	default:
		c.refuse(lateHeader)
	}
	return true
}

// closeUnused closes the connection unless a request has begun on it.
func (c *http1Conn) closeUnused() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.refused && c.begun.IsZero() {
		c.closeNow()
	}
}

// closeNow closes the connection; c.mu is held.
func (c *http1Conn) closeNow() error {
	c.refused = true // a request that comes now comes too late
	return c.Conn.Close()
}

// CloseWrite shuts down the sending side.
func (c *http1Conn) CloseWrite() error {
	c.mu.Lock()
	refused := c.refused
	c.mu.Unlock()
	if refused { // and the answer may be under way
		return nil
	}
	return c.halfClose()
}

func (c *http1Conn) halfClose() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close closes the connection. A client that has begun a request is told.
func (c *http1Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.refused: // it is being closed
		return nil
	case c.broken != nil: // http.Server would reset it, and the answer with it
		c.refused = true
		go c.part(nil)
		return nil
	case c.answering, c.begun.IsZero(), c.ended:
		return c.closeNow()
	}
	c.refuse(stopping)
	return nil
}

// http1Key is where the context of a request has its http1Conn.
type http1Key struct{}

// announced tells the connection of a request that its handler runs.
func announced(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(http1Key{}).(*http1Conn); ok && !c.begin() { // HTTP/2 has none
			panic(http.ErrAbortHandler)
		}
		h.ServeHTTP(w, r)
	})
}

// rested is for http.Server.ConnState.
func rested(c net.Conn, state http.ConnState) {
	if h, ok := c.(*http1Conn); ok && state == http.StateIdle {
		h.rest()
	}
}
