package worker

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// serveInetd serves the only client of a worker in inetd mode. It answers
// requests until the connection ends. It uses http.ReadRequest instead of
// http.Server, which would refuse requests without Host or with a complete URL.
func (s *server) serveInetd(c *http1Conn) {
	s.connStateChanged(c, http.StateNew)
	defer c.Close()
	ctx, in := s.connContext(context.Background(), c), bufio.NewReader(c)
	for limit := s.http.ReadHeaderTimeout; ; limit = s.http.IdleTimeout {
		_ = c.SetReadDeadline(time.Now().Add(limit))
		r, err := http.ReadRequest(in)
		if err != nil { // c has already answered, if an answer was due
			return
		}
		_ = c.SetReadDeadline(time.Time{})
		r.Header.Del("Host")
		if !s.answerInetd(c, r.WithContext(ctx)) || s.handshakeCtx.Err() != nil { // the second condition is true while the worker drains
			c.linger()
			return
		}
		s.connStateChanged(c, http.StateIdle)
	}
}

// answerInetd answers one request, and reports whether another may follow.
func (s *server) answerInetd(c *http1Conn, r *http.Request) (more bool) {
	w := newResponseWriter(c, r)
	if strings.EqualFold(r.Header.Get("Expect"), "100-continue") && r.ContentLength != 0 && !w.closeAfter {
		r.Body = &expectedBody{ReadCloser: r.Body, w: w}
	}
	defer func() {
		if p := recover(); p != nil {
			if p != http.ErrAbortHandler {
				slog.Error("handler panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			}
			_ = w.out.Flush() // so that the client sees that the answer is incomplete
			more = false
		}
	}()
	s.http.Handler.ServeHTTP(w, r)
	if w.finish() != nil || w.closeAfter {
		return false
	}
	limitUnreadBody(http.NewResponseController(w))
	_, err := io.CopyN(io.Discard, r.Body, 256<<10)
	return err == io.EOF
}

// A responseWriter writes an answer without http.Server. It is used in inetd
// mode, and to answer input that is not a valid request. In inetd mode,
// handlers announce the length of long answers (rest.Config.SendLength).
// Other answers are buffered until their length is known.
type responseWriter struct {
	conn        net.Conn
	request     *http.Request
	header      http.Header
	out         *bufio.Writer
	body        bytes.Buffer
	status      int  // 0 before WriteHeader is called
	wroteHeader bool // whether the header was written
	closeAfter  bool // whether the connection ends with this answer
}

func newResponseWriter(c net.Conn, r *http.Request) *responseWriter {
	return &responseWriter{
		conn:       c,
		request:    r,
		header:     http.Header{},
		out:        bufio.NewWriter(c),
		closeAfter: r.Close || !r.ProtoAtLeast(1, 1),
	}
}

// Header returns the header of the answer.
func (w *responseWriter) Header() http.Header { return w.header }

// WriteHeader sets the status. If the length of the answer is already known, it
// also sends the header.
func (w *responseWriter) WriteHeader(status int) {
	if w.status != 0 || status < http.StatusOK {
		return
	}
	if w.status = status; w.header.Get("Content-Length") != "" {
		w.sendHeader()
	}
}

// Write writes a part of the body.
func (w *responseWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	switch {
	case w.bodyless():
		return len(p), nil
	case w.wroteHeader:
		return w.out.Write(p)
	}
	return w.body.Write(p)
}

// bodyless reports whether the answer has no body (RFC 9110, 6.4.1).
func (w *responseWriter) bodyless() bool {
	return w.request.Method == http.MethodHead || w.status == http.StatusNoContent || w.status == http.StatusNotModified
}

func (w *responseWriter) sendHeader() {
	w.wroteHeader = true
	w.closeAfter = w.closeAfter || strings.EqualFold(w.header.Get("Connection"), "close")
	if w.closeAfter {
		w.header.Set("Connection", "close")
	}
	if w.header.Get("Date") == "" {
		w.header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	fmt.Fprintf(w.out, "HTTP/1.%d %03d %s\r\n", min(w.request.ProtoMinor, 1), w.status, http.StatusText(w.status))
	_ = w.header.Write(w.out)
	_, _ = w.out.WriteString("\r\n")
}

func (w *responseWriter) finish() error {
	w.WriteHeader(http.StatusOK)
	if !w.wroteHeader {
		if !w.bodyless() {
			w.header.Set("Content-Length", strconv.Itoa(w.body.Len()))
		}
		w.sendHeader()
		_, _ = w.body.WriteTo(w.out)
	}
	return w.out.Flush()
}

// Flush implements http.Flusher for http.ResponseController.
func (w *responseWriter) Flush() {
	if w.wroteHeader {
		_ = w.out.Flush()
	}
}

// SetReadDeadline implements the method for http.ResponseController.
func (w *responseWriter) SetReadDeadline(t time.Time) error { return w.conn.SetReadDeadline(t) }

// SetWriteDeadline implements the method for http.ResponseController.
func (w *responseWriter) SetWriteDeadline(t time.Time) error { return w.conn.SetWriteDeadline(t) }

// expectedBody is a body that the client sends only after 100 Continue.
type expectedBody struct {
	io.ReadCloser
	w *responseWriter
}

// Read sends 100 Continue before the first read.
func (b *expectedBody) Read(p []byte) (int, error) {
	if w := b.w; w != nil && w.status == 0 {
		b.w = nil
		if _, err := io.WriteString(w.conn, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return 0, err
		}
	}
	return b.ReadCloser.Read(p)
}
