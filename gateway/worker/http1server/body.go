package http1server

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// A message is the text of one request, from which net/http parses. It ends
// where the lexer says that the request ends.
type message struct {
	c    *Conn
	head []byte // the part of the head that was not read yet
}

func (m *message) Read(p []byte) (int, error) {
	if len(m.head) > 0 {
		n := copy(p, m.head)
		m.head = m.head[n:]
		return n, nil
	}
	return m.c.readBody(p)
}

// readBody reads a part of the current request's body, with its framing.
func (c *Conn) readBody(p []byte) (n int, err error) {
	switch {
	case c.bodyErr != nil:
		return 0, c.bodyErr
	case c.lexer.Done():
		return 0, io.EOF
	case len(c.in) > 0:
		n = copy(p, c.in)
		n, c.bodyErr = c.lexer.Body(p[:n])
		c.in = c.in[n:]
	default:
		read, err := c.conn.Read(p)
		if read == 0 {
			if err != nil && err != io.EOF {
				c.client.ReadFailed(err)
			}
			return 0, err
		}
		n, c.bodyErr = c.lexer.Body(p[:read])
		c.in = append(c.in[:0], p[n:read]...) // the beginning of the next request
	}
	if n == 0 {
		return 0, c.bodyErr
	}
	return n, nil
}

// discardBody reads the rest of a body that the handler has not read, unless it
// is long or does not arrive soon. It reports whether it has read all of it.
func (c *Conn) discardBody() bool {
	if !c.lexer.Done() && c.bodyErr == nil {
		_ = c.conn.SetReadDeadline(time.Now().Add(unreadTime))
		_, _ = io.CopyN(io.Discard, &message{c: c}, maxUnread)
	}
	return c.lexer.Done()
}

// A body is the body that a handler reads.
type body struct {
	io.ReadCloser // decodes the chunks
	c             *Conn
	w             *response
	expected      bool        // the client sends the body only after 100 Continue, which was not sent yet
	closed        atomic.Bool // whether the request was answered
}

// Read reads from the body. Before the first read, it sends 100 Continue if the
// client expects that. The error for an invalid body is a *http1.Error.
func (b *body) Read(p []byte) (int, error) {
	if b.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	if b.expected {
		b.expected = false
		if b.w.status == 0 {
			if _, err := io.WriteString(b.c.conn, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
				return 0, err
			}
		}
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && b.c.bodyErr != nil { // net/http does not return some errors
		err = b.c.bodyErr
	}
	return n, err
}

// Close makes later reads fail. The rest of the body is read after the answer.
func (b *body) Close() error {
	b.closed.Store(true)
	return nil
}
