package worker

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"schedrestd/auth"
	"schedrestd/http1"
)

// http1Conn is an HTTP/1 connection, plain or over TLS, that passes one request
// at a time to net/http: the head when it is complete and the lexer accepts it,
// the body as it arrives, and nothing of the next request before this one is
// answered. When the lexer refuses a head, or it does not arrive, Read itself
// answers and then reports the end of the connection. So everything that
// happens between two requests happens in Read, in the goroutine that serves
// the connection.
//
// This is needed because net/http accepts requests that two readers can frame
// differently (package http1), and has no hook between reading a head and
// acting on it.
type http1Conn struct {
	net.Conn
	peer auth.Peer
	own  *badRequests

	begins atomic.Bool // a request has begun and is not answered; for callers that must not wait for mu

	mu      sync.Mutex // guards what follows
	lexer   http1.Lexer
	in      []byte    // read and not passed on
	ready   int       // bytes of in that may be passed on
	broken  error     // why the rest of the body can't be read
	begun   time.Time // when the current request began; zero: it has not
	kept    bool      // a request was answered before
	handled bool      // the handler of the current request was called
	instead error     // why the rest of a head is no longer waited for; nil: it is
	ended   bool      // nothing more is passed on
}

// wrap returns c as net/http should read it.
func (b *badRequests) wrap(c net.Conn, peer auth.Peer) *http1Conn {
	return &http1Conn{Conn: c, peer: peer, own: b,
		lexer: http1.Lexer{MaxHead: b.maxHead, MaxBody: b.maxBody, Typed: b.typed}}
}

// NetConn returns the connection below.
func (c *http1Conn) NetConn() net.Conn { return c.Conn }

// Read reads the current request. When all of it was read, Read waits until the
// client is gone: net/http reads in the background while a request is answered,
// and cancels the request at any error. A client that only shut down its
// sending side is not gone.
func (c *http1Conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.lexer.HeadDone() && len(c.in) > 0 && !c.ended { // it came with the request before
		if err := c.advance(); err != nil {
			return 0, c.refuse(unreadable(err))
		}
	}
	for {
		switch {
		case c.ended:
			return 0, io.EOF
		case c.instead != nil:
			return 0, c.refuse(c.instead)
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
		if c.ended || c.instead != nil { // what arrived meanwhile is too late
			continue
		}
		if n > 0 {
			n, err = c.take(p, n)
		} else if err != nil {
			err = c.failed(err)
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// awaitGone replaces Read after a request: it returns when the client can
// neither send nor receive any longer, or at the deadline.
func (c *http1Conn) awaitGone([]byte) (int, error) {
	return 0, connOf(c.Conn).awaitGone()
}

// take returns how many of the n bytes in p Read should return. The next read
// returns an error of the connection again. c.mu is held.
func (c *http1Conn) take(p []byte, n int) (int, error) {
	direct := len(c.in) == 0 // nearly always: then nothing is copied
	if direct {
		c.in = p[:n]
	} else {
		c.in = append(c.in, p[:n]...)
	}
	if err := c.advance(); err != nil {
		c.in = nil
		return 0, c.refuse(unreadable(err))
	}
	n = c.pass(p)
	switch {
	case len(c.in) == 0:
		c.in = nil
	case direct:
		c.in = bytes.Clone(c.in)
	}
	return n, nil
}

// failed returns the error that Read should return when the connection can't be
// read. c.mu is held.
func (c *http1Conn) failed(err error) error {
	if isGarbled(err) {
		c.own.offences.malformed(idOf(c.Conn))
	}
	if c.begun.IsZero() || c.lexer.HeadDone() || c.ended {
		return err
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return c.refuse(lateHeader)
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return c.refuse(cutOff)
	}
	return err
}

// pass copies as many of the ready bytes as fit into p. c.mu is held.
func (c *http1Conn) pass(p []byte) int {
	n := copy(p, c.in[:c.ready])
	c.in, c.ready = c.in[n:], c.ready-n
	return n
}

// advance passes what was read to the lexer, and returns why the lexer refuses
// the head. c.mu is held.
func (c *http1Conn) advance() error {
	if !c.lexer.HeadDone() {
		c.in = c.in[c.lexer.Skip(c.in):]
		if len(c.in) == 0 {
			return nil
		}
		first := c.begun.IsZero()
		if first {
			c.begun = time.Now()
			c.begins.Store(true)
		}
		n, err := c.lexer.Head(c.in)
		switch {
		case err != nil:
			return err
		case n > 0:
			c.ready = n
		case first && c.kept: // until now the connection was idle
			_ = c.Conn.SetReadDeadline(c.begun.Add(c.own.readHeader))
			return nil
		default:
			return nil
		}
	}
	n, err := c.lexer.Body(c.in[c.ready:])
	c.ready += n
	c.broken = err
	return nil
}

// brokenBody returns why the rest of the current request's body can't be read,
// or nil.
func (c *http1Conn) brokenBody() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// begin notes that the handler of the current request is called.
func (c *http1Conn) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handled = true
}

// rest notes that an answer was sent. The next Read processes what has arrived
// of the next request.
func (c *http1Conn) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || !c.lexer.Done() || c.ready > 0 { // the rest of the body did not arrive: no request can follow
		c.ended = true
		_ = c.Conn.Close()
		return
	}
	c.kept, c.handled, c.begun = true, false, time.Time{}
	c.begins.Store(false)
	c.lexer.Next()
}

// refuse answers a request that is not passed on, waits while the client reads
// the answer, and returns what Read should return. c.mu is held.
func (c *http1Conn) refuse(why error) error {
	c.ended = true
	c.mu.Unlock()
	defer c.mu.Lock()
	c.own.offences.counts.unread.Add(1)
	if isMalformed(why) {
		c.own.offences.malformed(idOf(c.Conn))
	}
	if c.own.refuse(c.Conn, c.peer, why) == nil {
		c.linger()
	}
	return io.EOF
}

// linger gives a client that may still be sending a moment to read its answer:
// closing a connection with unread data resets it.
func (c *http1Conn) linger() {
	if c.CloseWrite() == nil {
		_ = c.Conn.SetReadDeadline(time.Now().Add(lastRead))
		_, _ = io.CopyN(io.Discard, c.Conn, 256<<10)
	}
}

// lastRead is how long a refused client may take to read the answer.
const lastRead = 500 * time.Millisecond

// giveWay closes an idle connection, so that its slot is free for a connection
// that waits. It reports whether it did: a request that has begun is answered
// first.
func (c *http1Conn) giveWay() bool {
	if c.closeUnused() {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended && !c.begun.IsZero() && !c.lexer.HeadDone() {
		c.wake(lateHeader)
		return true
	}
	return c.ended
}

// closeUnused closes the connection unless a request has begun on it, and
// reports whether it did.
func (c *http1Conn) closeUnused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || !c.begun.IsZero() || len(c.in) > 0 {
		return false
	}
	c.ended = true // a request that arrives now is too late
	_ = c.Conn.Close()
	return true
}

// wake ends Read's wait for the rest of a head. c.mu is held.
func (c *http1Conn) wake(why error) {
	c.instead = why
	_ = c.Conn.SetReadDeadline(time.Now())
}

// CloseWrite shuts down the sending side.
func (c *http1Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close closes the connection, but answers a client that has begun a request
// first: when http.Server shuts down, it closes connections on which it waits
// for a head, and drops a request that it has just read. At any other time, a
// request that never reached its handler is one that net/http refused by
// itself, which is an offence.
func (c *http1Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended, c.begun.IsZero():
		return c.Conn.Close()
	case !c.lexer.HeadDone():
		c.wake(stopping) // Read answers
	case !c.handled && leaving.Load():
		c.ended = true
		go func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			_ = c.refuse(stopping)
			_ = c.Conn.Close()
		}()
	case c.broken != nil:
		c.ended = true
		go func() { c.linger(); _ = c.Conn.Close() }()
	case !c.handled:
		c.own.offences.counts.unread.Add(1)
		c.own.offences.malformed(idOf(c.Conn))
		return c.Conn.Close()
	default:
		return c.Conn.Close()
	}
	return nil
}
