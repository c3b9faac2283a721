package http1server

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A response writes an answer. A short answer is kept until the handler
// returns, and gets a Content-Length. If an answer is longer than maxShort, and
// the handler has not announced its length, it is sent in chunks, or over
// HTTP/1.0, until the connection ends.
type response struct {
	c       *Conn
	r       *http.Request
	cancel  context.CancelFunc // cancels the request
	header  http.Header
	out     *outBuffer
	expects bool // whether the client expects 100 Continue

	status  int    // 0 before WriteHeader is called
	length  int64  // length of the body, or -1 if it is not known yet
	written int64  // bytes of the body
	short   []byte // the body, while it is short and its length is unknown
	framed  bool   // whether the end of the header was written
	chunked bool
	closes  bool // whether the connection ends with this answer
}

const (
	maxShort = 2 << 10
	maxOut   = 4 << 10 // the size of an outBuffer
)

func newResponse(c *Conn, r *http.Request) *response {
	w := &response{c: c, r: r, header: http.Header{}, length: -1, out: outBuffers.Get().(*outBuffer), cancel: func() {}}
	w.out.w = w
	w.closes = r.Close || !r.ProtoAtLeast(1, 1)
	w.expects = r.ContentLength != 0 && r.ProtoAtLeast(1, 1) && strings.EqualFold(r.Header.Get("Expect"), "100-continue")
	return w
}

// release releases the buffer. The response must not be used afterwards.
func (w *response) release() {
	w.out.w, w.out.err = nil, nil
	w.out.Reset()
	if w.out.Cap() <= 4*maxOut {
		outBuffers.Put(w.out)
	}
	w.out = nil
}

// Header returns the header of the answer. Changes after WriteHeader have no
// effect.
func (w *response) Header() http.Header { return w.header }

// WriteHeader sets the status and the fields of the header. It ignores
// informational statuses.
func (w *response) WriteHeader(status int) {
	if w.status != 0 || status < http.StatusOK {
		return
	}
	w.status = status
	if n, err := strconv.ParseInt(w.header.Get("Content-Length"), 10, 64); err == nil && n >= 0 && hasBody(status) {
		w.length = n
	}
	w.closes = w.closes || strings.EqualFold(w.header.Get("Connection"), "close")
	o, version := w.out, "HTTP/1.1 "
	if !w.r.ProtoAtLeast(1, 1) {
		version = "HTTP/1.0 "
	}
	o.WriteString(version)
	o.Write(strconv.AppendInt(o.AvailableBuffer(), int64(status), 10))
	o.WriteString(" " + http.StatusText(status) + "\r\n")
	omitted := framing
	if status == http.StatusNotModified {
		omitted = framing304
	}
	_ = w.header.WriteSubset(o, omitted)
	if w.header.Get("Date") == "" {
		o.WriteString("Date: ")
		o.Write(time.Now().UTC().AppendFormat(o.AvailableBuffer(), http.TimeFormat))
		o.WriteString("\r\n")
	}
	if w.length >= 0 || !hasBody(status) {
		w.endHeader()
	}
}

// The fields that endHeader writes, and those that a 304 does not have.
var (
	framing    = map[string]bool{"Connection": true, "Content-Length": true, "Transfer-Encoding": true}
	framing304 = map[string]bool{"Connection": true, "Content-Length": true, "Transfer-Encoding": true, "Content-Type": true}
)

// hasBody reports whether an answer with this status has a body (RFC 9110,
// 6.4.1).
func hasBody(status int) bool {
	return status >= http.StatusOK && status != http.StatusNoContent && status != http.StatusNotModified
}

// endHeader decides how the body is framed, and writes the rest of the header.
func (w *response) endHeader() {
	w.framed = true
	isHead := w.r.Method == http.MethodHead
	if hasBody(w.status) && w.length < 0 && !isHead {
		w.chunked = w.r.ProtoAtLeast(1, 1)
		w.closes = w.closes || !w.chunked // otherwise the body has no end
	}
	// A client that gets this answer instead of 100 Continue may send the body or
	// another request. And the rest of a long body is not worth reading.
	unread := !w.c.lexer.Done()
	w.closes = w.closes || w.c.draining.Load() || unread && (w.r.ContentLength > maxUnread || w.expects && !w.c.server.Interactive)
	o := w.out
	if w.closes {
		o.WriteString("Connection: close\r\n")
	}
	switch {
	case w.length >= 0:
		o.WriteString("Content-Length: ")
		o.Write(strconv.AppendInt(o.AvailableBuffer(), w.length, 10))
		o.WriteString("\r\n\r\n")
	case w.chunked:
		o.WriteString("Transfer-Encoding: chunked\r\n\r\n")
	default:
		o.WriteString("\r\n")
	}
}

// Write writes a part of the body.
func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if !hasBody(w.status) {
		return 0, http.ErrBodyNotAllowed
	}
	w.written += int64(len(p))
	switch {
	case w.length >= 0 && w.written > w.length:
		return 0, http.ErrContentLength
	case len(p) == 0 || w.r.Method == http.MethodHead:
		return len(p), w.out.err
	case !w.framed && w.written <= maxShort:
		w.short = append(w.short, p...)
		return len(p), nil
	case !w.framed:
		w.startBody()
	}
	return len(p), w.send(p)
}

// startBody ends the header of an answer whose length is unknown, and sends the
// body that was kept so far.
func (w *response) startBody() {
	w.endHeader()
	if len(w.short) > 0 {
		_ = w.send(w.short)
		w.short = nil
	}
}

// send sends a part of the body. If there is an error, all later writes return
// it as well.
func (w *response) send(p []byte) error {
	if !w.chunked {
		return w.out.send(p)
	}
	o := w.out
	o.Write(append(strconv.AppendInt(o.AvailableBuffer(), int64(len(p)), 16), "\r\n"...))
	_ = o.send(p)
	return o.send(crlf)
}

var crlf = []byte("\r\n")

// FlushError sends what was written so far.
func (w *response) FlushError() error {
	w.WriteHeader(http.StatusOK)
	if !w.framed {
		w.startBody()
	}
	return w.out.flush()
}

// Flush implements http.Flusher.
func (w *response) Flush() { _ = w.FlushError() }

// finish sends the rest of the answer. If the handler has written less than it
// announced, the connection ends.
func (w *response) finish() error {
	w.WriteHeader(http.StatusOK)
	isHead := w.r.Method == http.MethodHead
	switch {
	case !w.framed && isHead && w.written == 0: // the length is that of the answer to a GET, which is unknown
		w.endHeader()
	case !w.framed:
		w.length = w.written
		w.endHeader()
		_ = w.out.send(w.short)
	case w.chunked:
		w.out.WriteString("0\r\n\r\n")
	case !isHead && hasBody(w.status) && w.length >= 0 && w.written < w.length:
		w.closes = true
	}
	return w.out.flush()
}

// SetReadDeadline sets the deadline for reads of the body.
func (w *response) SetReadDeadline(t time.Time) error { return w.c.conn.SetReadDeadline(t) }

// SetWriteDeadline sets the deadline for writes of the answer.
func (w *response) SetWriteDeadline(t time.Time) error { return w.c.conn.SetWriteDeadline(t) }

// An outBuffer collects output for the connection.
type outBuffer struct {
	bytes.Buffer
	w   *response
	err error // error of an earlier write
}

var outBuffers = sync.Pool{New: func() any {
	o := new(outBuffer)
	o.Grow(maxOut)
	return o
}}

// send adds p to the buffer, or writes the buffer and p if p does not fit.
func (o *outBuffer) send(p []byte) error {
	if o.Len()+len(p) > maxOut {
		_ = o.flush()
	}
	if o.err == nil && len(p) > maxOut {
		_, err := o.w.c.conn.Write(p)
		o.fail(err)
	} else {
		o.Write(p)
	}
	return o.err
}

// flush writes the contents of the buffer to the connection.
func (o *outBuffer) flush() error {
	if o.err == nil && o.Len() > 0 {
		_, err := o.w.c.conn.Write(o.Bytes())
		o.fail(err)
	}
	o.Reset()
	return o.err
}

// fail records the error of a write, and cancels the request, because its
// client gets no answer.
func (o *outBuffer) fail(err error) {
	if err != nil {
		o.err = err
		o.w.cancel()
	}
}
