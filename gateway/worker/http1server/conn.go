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
	"time"

	"schedrestd/internal/http1"
)

// NewConn returns a connection that Serve serves. The contexts of its requests
// are derived from ctx.
func (s *Server) NewConn(ctx context.Context, c net.Conn, client Client) *Conn {
	return &Conn{server: s, conn: c, client: client, ctx: ctx, remoteAddr: c.RemoteAddr().String(),
		lexer: http1.Lexer{MaxHead: s.MaxHead, MaxBody: s.MaxBody, Interactive: s.Interactive}}
}

// Serve answers one request after the other until the connection ends, and
// closes it.
func (c *Conn) Serve() {
	defer c.conn.Close()
	defer c.state.Store(ended)
	call(c.serve)
}

func (c *Conn) serve() {
	for limit := c.server.HeadTimeout; ; limit = c.server.IdleTimeout {
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
	c.state.Store(next)
	if c.stopping.Load() { // StopReading has found the state answering
		c.end(stopped)
	}
	c.client.Answered()
	return !c.draining.Load() || next == head || c.client.HasUnread() || !c.state.CompareAndSwap(idle, ended)
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
	c.state.Store(ended)
	c.client.Refused(isMalformed(err))
	r := (&http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, URL: new(url.URL), Header: http.Header{}, Body: http.NoBody}).WithContext(c.ctx)
	w := newResponse(c, r)
	defer w.release()
	w.closes = true
	if call(func() { c.server.Refuse(w, r, err) }) && w.finish() == nil {
		c.linger(lingerTime)
	}
}

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

// Drain closes the connection if it has no request, and otherwise makes its next
// answer the last. If the header of an answer was sent before, the connection
// closes after that answer, unless another request has arrived.
func (c *Conn) Drain() {
	c.draining.Store(true)
	if !c.client.HasUnread() && (c.state.CompareAndSwap(idle, ended) || c.state.CompareAndSwap(fresh, ended)) {
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

// end ends the connection unless a request is being answered, and reports
// whether it has ended. If a part of a head has arrived, its state becomes why.
func (c *Conn) end(why int32) bool {
	switch {
	case c.state.CompareAndSwap(fresh, ended), c.state.CompareAndSwap(idle, ended):
		_ = c.conn.Close()
	case c.state.CompareAndSwap(head, why):
		_ = c.conn.SetReadDeadline(time.Now()) // interrupts the read
	}
	return c.state.Load() > idle
}
