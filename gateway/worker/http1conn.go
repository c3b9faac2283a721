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
	"schedrestd/internal/http1"
)

// An http1Conn is an HTTP/1 connection, plain or over TLS, that passes one
// request at a time to net/http. It passes a head only after the lexer has
// accepted the whole head. It passes the body as it arrives. It passes nothing
// of the next request until the current one has been answered.
//
// If the lexer refuses a head, or the rest of a head does not arrive, Read
// itself sends the answer and then returns io.EOF. So all work between two
// requests is done in Read, in the goroutine that serves the connection.
//
// All this is necessary because net/http accepts requests that two parsers can
// frame differently (see package http1). net/http has no hook between reading a
// head and acting on it.
//
// The descriptor and its slot are freed in Close. Close may leave this to
// another goroutine, but only to one that certainly closes the connection: a
// Read in progress, or a goroutine that Close itself starts. Otherwise an
// unexpected error could keep a slot permanently.
type http1Conn struct {
	net.Conn
	peer        auth.Peer
	badRequests *badRequests

	inRequest atomic.Bool // a request has begun and has not been answered yet; for callers that must not wait for mu

	mu           sync.Mutex // guards the fields below
	lexer        http1.Lexer
	in           []byte    // bytes that have been read but not passed on
	ready        int       // how many bytes of in may be passed on
	bodyErr      error     // why the rest of the body can't be read
	requestStart time.Time // when the current request began; zero if none has
	reused       bool      // whether an earlier request was answered
	handled      bool      // whether the handler of the current request was called
	headErr      error     // why Read no longer waits for the rest of a head; otherwise nil
	ended        bool      // whether nothing more is passed on
	reading      bool      // whether a Read is in progress
	closeAfter   bool      // whether the Read in progress must close the connection when it returns
}

func (b *badRequests) wrap(c net.Conn, peer auth.Peer) *http1Conn {
	return &http1Conn{Conn: c, peer: peer, badRequests: b,
		lexer: http1.Lexer{MaxHead: b.maxHead, MaxBody: b.maxBody, Interactive: b.typed}}
}

// NetConn returns the wrapped connection.
func (c *http1Conn) NetConn() net.Conn { return c.Conn }

// Read reads the current request. While a request is being answered, net/http
// reads in the background, and cancels the request if that read fails. So once
// the whole request has been read, Read waits until the client is gone, or
// until the read deadline. A client that has only shut down its sending side is
// not gone.
func (c *http1Conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = true
	defer func() {
		c.reading = false
		if c.closeAfter {
			_ = c.Conn.Close()
		}
	}()
	return c.read(p)
}

// read does the work of Read. If it returns an error, nothing more can be read
// from the connection, with two exceptions: an invalid body, and a deadline
// that passes outside a head. The caller holds c.mu, which read unlocks while
// it waits for input.
func (c *http1Conn) read(p []byte) (int, error) {
	if !c.lexer.HeadDone() && len(c.in) > 0 && !c.ended { // these bytes arrived with the previous request
		if err := c.advance(); err != nil {
			return 0, c.refuse(lexerError(err))
		}
	}
	for {
		switch {
		case c.ended:
			return 0, io.EOF
		case c.headErr != nil:
			return 0, c.refuse(c.headErr)
		case c.ready > 0:
			return c.copyReady(p), nil
		case c.bodyErr != nil:
			return 0, c.bodyErr
		}
		read := c.Conn.Read
		if c.lexer.Done() {
			read = c.waitHangup
		}
		c.mu.Unlock()
		n, err := read(p)
		c.mu.Lock()
		if c.ended || c.headErr != nil { // bytes that arrived meanwhile are too late
			continue
		}
		if n > 0 {
			n, err = c.process(p, n)
		} else if err != nil {
			err = c.readError(err)
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// waitHangup takes the place of a read when the whole request has been read. It
// returns when the client can neither send nor receive, or at the read
// deadline.
func (c *http1Conn) waitHangup([]byte) (int, error) {
	return 0, connOf(c.Conn).waitHangup()
}

// process handles n bytes that have arrived in p, and returns how many of them
// Read should return. If the connection returned an error together with these
// bytes, Read ignores the error, because the next read returns it again. The
// caller holds c.mu.
func (c *http1Conn) process(p []byte, n int) (int, error) {
	direct := len(c.in) == 0 // nearly always true, so nothing is copied
	if direct {
		c.in = p[:n]
	} else {
		c.in = append(c.in, p[:n]...)
	}
	if err := c.advance(); err != nil {
		c.in = nil
		return 0, c.refuse(lexerError(err))
	}
	n = c.copyReady(p)
	switch {
	case len(c.in) == 0:
		c.in = nil
	case direct:
		c.in = bytes.Clone(c.in)
	}
	return n, nil
}

// readError returns the error that Read should return after the connection has
// returned err. Any error ends the connection, except for a deadline that
// passes outside a head. net/http uses such deadlines to interrupt a Read. The
// caller holds c.mu.
func (c *http1Conn) readError(err error) error {
	if isGarbled(err) {
		c.badRequests.offences.reportMalformed(idOf(c.Conn))
	}
	inHead := !c.requestStart.IsZero() && !c.lexer.HeadDone()
	timedOut := errors.Is(err, os.ErrDeadlineExceeded)
	switch {
	case inHead && timedOut:
		return c.refuse(errHeaderTimeout)
	case inHead && (err == io.EOF || err == io.ErrUnexpectedEOF):
		return c.refuse(errIncomplete)
	}
	if !timedOut {
		c.ended = true
	}
	return err
}

// copyReady copies as many of the ready bytes to p as fit. The caller holds
// c.mu.
func (c *http1Conn) copyReady(p []byte) int {
	n := copy(p, c.in[:c.ready])
	c.in, c.ready = c.in[n:], c.ready-n
	return n
}

// advance passes the bytes that were read to the lexer. If the lexer refuses
// the head, advance returns the lexer's reason. The caller holds c.mu.
func (c *http1Conn) advance() error {
	if !c.lexer.HeadDone() {
		c.in = c.in[c.lexer.Skip(c.in):]
		if len(c.in) == 0 {
			return nil
		}
		first := c.requestStart.IsZero()
		if first {
			c.requestStart = time.Now()
			c.inRequest.Store(true)
		}
		n, err := c.lexer.Head(c.in)
		switch {
		case err != nil:
			return err
		case n > 0:
			c.ready = n
		case first && c.reused: // the connection was idle before
			_ = c.Conn.SetReadDeadline(c.requestStart.Add(c.badRequests.headerTimeout))
			return nil
		default:
			return nil
		}
	}
	n, err := c.lexer.Body(c.in[c.ready:])
	c.ready += n
	c.bodyErr = err
	return nil
}

// bodyError returns the reason why the rest of the current body can't be read,
// or nil.
func (c *http1Conn) bodyError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bodyErr
}

// setHandled records that the handler of the current request was called.
func (c *http1Conn) setHandled() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handled = true
}

// finishRequest records that an answer was sent. If bytes of the next request
// have already arrived, the next Read handles them.
func (c *http1Conn) finishRequest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || !c.lexer.Done() || c.ready > 0 { // the rest of the body did not arrive, so no request can follow
		c.ended = true
		_ = c.Conn.Close()
		return
	}
	c.reused, c.handled, c.requestStart = true, false, time.Time{}
	c.inRequest.Store(false)
	c.lexer.Next()
}

// refuse answers a request that net/http will not get, and gives the client
// time to read the answer. It returns the result for Read. The caller holds
// c.mu.
func (c *http1Conn) refuse(err error) error {
	c.ended = true
	c.mu.Unlock()
	defer c.mu.Lock()
	c.badRequests.offences.counts.badRequests.Add(1)
	if isMalformed(err) {
		c.badRequests.offences.reportMalformed(idOf(c.Conn))
	}
	if c.badRequests.refuse(c.Conn, c.peer, err) == nil {
		c.linger()
	}
	return io.EOF
}

// linger gives the client a moment to read its answer. A client may still be
// sending, and closing a connection with unread data resets it.
func (c *http1Conn) linger() {
	if c.CloseWrite() == nil {
		_ = c.Conn.SetReadDeadline(time.Now().Add(lingerTime))
		_, _ = io.CopyN(io.Discard, c.Conn, 256<<10)
	}
}

// lingerTime is how long a refused client may take to read the answer.
const lingerTime = 500 * time.Millisecond

// reclaim frees the connection's slot for a waiting connection. It closes the
// connection unless a complete head has arrived, and reports whether the
// connection will close. An idle connection closes at once. If part of a head
// has arrived, Read first sends an error.
func (c *http1Conn) reclaim() bool {
	if c.closeUnused() {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended && !c.requestStart.IsZero() && !c.lexer.HeadDone() {
		c.wake(errHeaderTimeout)
		return true
	}
	return c.ended
}

// closeUnused closes the connection unless a request has begun. It reports
// whether it closed the connection.
func (c *http1Conn) closeUnused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || !c.requestStart.IsZero() || len(c.in) > 0 {
		return false
	}
	c.ended = true // a request that arrives from now on is too late
	_ = c.Conn.Close()
	return true
}

// wake makes Read stop waiting for the rest of a head. The caller holds c.mu.
func (c *http1Conn) wake(err error) {
	c.headErr = err
	_ = c.Conn.SetReadDeadline(time.Now())
}

// CloseWrite shuts down the sending side.
func (c *http1Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close closes the connection. When http.Server shuts down, it calls Close on a
// connection that is waiting for the rest of a head, and on one whose request
// it has just read but drops. In both cases, the client first gets an answer.
// At any other time, a request that has not reached its handler was refused by
// net/http itself. Close reports such a request as an offence.
func (c *http1Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended, c.requestStart.IsZero():
	case !c.lexer.HeadDone() && c.reading: // Read sends the answer
		c.closeAfter = true
		c.wake(errStopping)
		return nil
	case !c.lexer.HeadDone():
	case !c.handled && draining.Load():
		c.ended = true
		go func() {
			defer c.Conn.Close()
			c.mu.Lock()
			defer c.mu.Unlock()
			_ = c.refuse(errStopping)
		}()
		return nil
	case c.bodyErr != nil:
		c.ended = true
		go func() {
			defer c.Conn.Close()
			c.linger()
		}()
		return nil
	case !c.handled:
		c.badRequests.offences.counts.badRequests.Add(1)
		c.badRequests.offences.reportMalformed(idOf(c.Conn))
	}
	return c.Conn.Close()
}
