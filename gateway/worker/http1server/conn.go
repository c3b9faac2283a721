package http1server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"sync/atomic"
	"time"

	"schedrestd/internal/http1"
)

// A Conn is an HTTP/1 connection, plain or over TLS. Only the goroutine that
// runs Serve uses its fields, except for the constant and the atomic ones.
type Conn struct {
	server     *Server
	conn       net.Conn
	client     Client
	ctx        context.Context // of all its requests
	remoteAddr string

	stage    stage
	draining atomic.Bool                        // see Drain
	stopping atomic.Bool                        // see StopReading
	cancel   atomic.Pointer[context.CancelFunc] // cancels the request that is being answered; nil if there is none

	lexer   http1.Lexer
	in      []byte // bytes that have been read and not yet used
	bodyErr error  // why the rest of the current body can't be read
	reused  bool   // whether an earlier request was answered
}

// A stage says what a connection does. The goroutine that runs Serve and those
// that end the connection agree by compare-and-swap: a request whose head is
// complete is answered, unless the connection was ended before.
type stage struct{ atomic.Int32 }

const (
	fresh     int32 = iota // no byte of a request has arrived yet
	head                   // a part of a head has arrived
	answering              // the head is complete; the body may still arrive
	idle                   // at least one request was answered, and none has begun
	reclaimed              // another client needs the slot: a part of a head gets an answer
	stopped                // the worker stops: a part of a head gets an answer
	ended                  // nothing more is read
)

// NewConn returns a connection that Serve serves. The contexts of its requests
// are derived from ctx.
func (s *Server) NewConn(ctx context.Context, c net.Conn, client Client) *Conn {
	conn := &Conn{server: s, conn: c, client: client, ctx: ctx,
		lexer: http1.Lexer{MaxHead: s.MaxHead, MaxBody: s.MaxBody, Interactive: s.Interactive}}
	if addr := c.RemoteAddr(); addr != nil { // it is nil if the client has already disconnected
		conn.remoteAddr = addr.String()
	}
	return conn
}

// Serve answers one request after the other until the connection ends, and
// closes it.
func (c *Conn) Serve() {
	defer c.conn.Close()
	defer c.stage.Store(ended)
	call(c.serve)
}

func (c *Conn) serve() {
	for limit := c.server.HeadTimeout; !c.stopping.Load(); limit = c.server.IdleTimeout {
		_ = c.conn.SetReadDeadline(time.Now().Add(limit))
		r, err := c.readRequest()
		if err != nil {
			if err != errEnded {
				c.refuse(err)
			}
			return
		}
		if !c.answer(r) {
			return
		}
	}
}

// Refuse answers the client with err, as the only answer on the connection. It
// takes the place of Serve.
func (c *Conn) Refuse(err error) {
	defer c.conn.Close()
	c.refuse(err)
}

// endReason returns the error for a request that has not been read completely,
// if the connection was ended in the meantime.
func (c *Conn) endReason() error {
	switch c.stage.Load() {
	case reclaimed:
		return errHeadTimeout
	case stopped:
		return errStopping
	case ended:
		return errEnded
	}
	return nil
}

// answer answers r, and reports whether another request may follow.
func (c *Conn) answer(r *http.Request) (more bool) {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	r = r.WithContext(ctx)
	w := newResponse(c, r)
	defer w.release()
	w.cancel = cancel
	if r.Body != http.NoBody {
		_ = c.conn.SetReadDeadline(time.Time{})
		b := &body{ReadCloser: r.Body, c: c, w: w, expected: w.expects}
		defer b.closed.Store(true)
		r.Body = b
	}
	c.cancel.Store(&cancel)
	returned := call(func() { c.server.Handler.ServeHTTP(w, r) })
	c.cancel.Store(nil)
	switch {
	case !returned:
		if w.framed { // the client must see that the answer is incomplete
			_ = w.out.flush()
		}
		return false
	case w.finish() != nil:
		return false
	case w.closes || !c.discardBody():
		if !c.lexer.Done() || len(c.in) > 0 {
			c.linger(unreadTime)
		}
		return false
	}
	c.reused = true
	c.lexer.Next()
	next := idle
	if c.in = c.in[c.lexer.Skip(c.in):]; len(c.in) > 0 {
		next = head
	}
	c.stage.Store(next)
	c.client.Answered()
	return !c.draining.Load() || next == head || !c.stage.CompareAndSwap(idle, ended)
}

// call calls f, and reports whether f returned. It logs a panic, unless the
// handler only aborts the answer. One connection must not end all others.
func call(f func()) (returned bool) {
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler {
			slog.Error("handler panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	f()
	return true
}

// refuse sends err as the answer to a client whose input is not a request, and
// gives the client time to read it.
func (c *Conn) refuse(err error) {
	c.stage.Store(ended)
	c.client.Refused(isMalformed(err))
	r := (&http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, URL: new(url.URL), Header: http.Header{}, Body: http.NoBody}).WithContext(c.ctx)
	w := newResponse(c, r)
	defer w.release()
	w.closes = true
	if call(func() { c.server.Refuse(w, r, err) }) && w.finish() == nil {
		c.linger(lingerTime)
	}
}

const (
	lingerTime = 500 * time.Millisecond // how long a refused client may take to read the answer
	unreadTime = time.Second            // how long the rest of a body is read that no handler has read
	maxUnread  = 256 << 10              // how much of it is read, in bytes
)

// linger gives the client a moment to read its answer. A client may still be
// sending, and closing a connection with unread data resets it.
func (c *Conn) linger(limit time.Duration) {
	half, ok := c.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(limit))
	_, _ = io.CopyN(io.Discard, c.conn, maxUnread)
}

// Reclaim frees the connection's slot for another client. It ends the
// connection unless a complete head has arrived, and reports whether the
// connection will close. A connection without a request closes at once. If a
// part of a head has arrived, the client first gets an error.
func (c *Conn) Reclaim() bool { return c.end(reclaimed) }

// Drain closes the connection if it is idle, and otherwise makes its next answer
// the last.
func (c *Conn) Drain() {
	c.draining.Store(true)
	if !c.client.HasUnread() && (c.stage.CompareAndSwap(idle, ended) || c.server.Interactive && c.stage.CompareAndSwap(fresh, ended)) {
		_ = c.conn.Close()
	}
}

// StopReading ends the connection unless a request is being answered. A client
// that has sent a part of a head gets an answer.
func (c *Conn) StopReading() {
	c.stopping.Store(true)
	c.end(stopped)
}

// Cancel cancels the request that is being answered, if there is one.
func (c *Conn) Cancel() {
	if cancel := c.cancel.Load(); cancel != nil {
		(*cancel)()
	}
}

// Close closes the connection at once.
func (c *Conn) Close() error { return c.conn.Close() }

// HasBegun reports whether a part of a request has arrived that was not
// answered yet.
func (c *Conn) HasBegun() bool { s := c.stage.Load(); return s == head || s == answering }

// end ends the connection unless a request is being answered, and reports
// whether it has ended. If a part of a head has arrived, its stage becomes why.
func (c *Conn) end(why int32) bool {
	switch {
	case c.stage.CompareAndSwap(fresh, ended), c.stage.CompareAndSwap(idle, ended):
		_ = c.conn.Close()
	case c.stage.CompareAndSwap(head, why):
		_ = c.conn.SetReadDeadline(time.Now()) // interrupts the read
	}
	return c.stage.Load() > idle
}
