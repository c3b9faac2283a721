package http1server

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/http1"
)

// The errors for input that is not a request, apart from those of the lexer.
// Each of them closes the connection, because it is unknown where the next
// request starts.
var (
	errIncomplete  = errs.New(errs.Malformed, "incomplete request header: it must end with an empty line")
	errHeadTimeout = errs.New(errs.RequestTimeout, "request header not received in time")
	errReclaimed   = errs.New(errs.Unavailable, "server busy: the connection was closed for another client before the request was served")
	errStopping    = errs.New(errs.Unavailable, "connection closed before the request was complete")

	// ErrPlainHTTP is the error for a client that does not use TLS where it has
	// to.
	ErrPlainHTTP = errs.New(errs.Malformed, "received plain HTTP where TLS is served; use https://")
)

// errEnded means that the connection ends without an answer.
var errEnded = errors.New("the connection has ended")

// endReason returns the error for a request that is not served, if the
// connection was ended before. The argument whole says that its head has arrived
// in the meantime, so that the client can't have been too slow.
func (c *Conn) endReason(whole bool) error {
	switch c.state.Load() {
	case reclaimed:
		if whole {
			return errReclaimed
		}
		return errHeadTimeout
	case stopped:
		return errStopping
	case ended:
		return errEnded
	}
	return nil
}

// readRequest reads the head of a request. The body of the request reads from
// the connection.
func (c *Conn) readRequest() (*http.Request, error) {
	n, err := c.readHead()
	if err != nil {
		return nil, err
	}
	text := &message{c: c, head: c.in[:n]}
	c.in = c.in[n:]
	in := parsers.Get().(*bufio.Reader)
	in.Reset(text)
	r, err := http.ReadRequest(in)
	if err != nil { // the lexer accepts nothing that net/http refuses
		return nil, errs.New(errs.Malformed, "invalid HTTP/1.1 request")
	}
	r.RemoteAddr, r.Trailer = c.remoteAddr, nil // answer copies r, so the trailer that net/http sets later has no effect
	if r.Body == http.NoBody {
		parsers.Put(in)
	}
	return r, nil
}

// parsers holds the buffers from which heads are parsed.
var parsers = sync.Pool{New: func() any { return bufio.NewReader(nil) }}

// readHead reads until the lexer accepts a head, and returns its length. The
// head is at the beginning of c.in.
func (c *Conn) readHead() (n int, err error) {
	for begun := false; ; {
		c.in = c.in[c.lexer.Skip(c.in):]
		first := !begun && len(c.in) > 0
		if first {
			begun = true
			if c.state.CompareAndSwap(fresh, head) {
				c.client.Begun()
			} else {
				c.state.CompareAndSwap(idle, head) // it fails if answer has set head already, or if the connection was ended
			}
		}
		if begun {
			n, err := c.lexer.Head(c.in)
			if reason := c.endReason(n > 0); reason != nil {
				return 0, reason
			}
			switch {
			case err != nil:
				return 0, lexerError(err)
			case n > 0 && c.state.CompareAndSwap(head, answering):
				return n, nil
			case n > 0:
				return 0, c.endReason(true)
			case first && c.reused: // the connection was idle before
				_ = c.conn.SetReadDeadline(time.Now().Add(c.server.HeadTimeout))
			}
		}
		if err := c.readMore(begun); err != nil {
			return 0, err
		}
	}
}

// readMore reads more of a head. The argument begun says whether a part of it
// has arrived.
func (c *Conn) readMore(begun bool) error {
	if err := c.endReason(false); err != nil { // end may have set a deadline that readHead has just replaced
		return err
	}
	n, err := c.conn.Read(c.room())
	if n > 0 || err == nil { // the next read returns the error again
		c.in = c.in[:len(c.in)+n]
		return nil
	}
	if err != io.EOF {
		c.client.ReadFailed(err)
	}
	switch reason := c.endReason(false); {
	case reason != nil:
		return reason
	case begun && errors.Is(err, os.ErrDeadlineExceeded):
		return errHeadTimeout
	case begun && (err == io.EOF || err == io.ErrUnexpectedEOF):
		return errIncomplete
	}
	return errEnded
}

// The sizes of the buffer for input, and of the free space for a read.
const (
	bufferSize = 4 << 10
	minRead    = 512
)

// room returns free space behind c.in.
func (c *Conn) room() []byte {
	if len(c.in) == 0 && cap(c.in) != bufferSize { // also releases a long buffer
		c.in = make([]byte, 0, bufferSize)
	}
	if cap(c.in)-len(c.in) < minRead {
		c.in = append(make([]byte, 0, 2*(len(c.in)+minRead)), c.in...)
	}
	return c.in[len(c.in):cap(c.in)]
}

// lexerError returns the error for a request that the lexer refuses.
func lexerError(err error) error {
	e, ok := errors.AsType[*http1.Error](err)
	switch {
	case !ok || e.Status == http.StatusBadRequest:
		return errs.New(errs.Malformed, "invalid HTTP/1.1 request: %v", err)
	case e.Status == http.StatusRequestURITooLong:
		return errs.New(errs.URITooLong, "%s", e.Reason)
	case e.Status == http.StatusRequestHeaderFieldsTooLarge:
		return errs.New(errs.HeaderTooLarge, "%s", e.Reason)
	}
	return errs.Wrap(&http1.Error{Status: e.Status, Reason: http.StatusText(e.Status)}, errs.Unsupported, "%s", e.Reason)
}

// isMalformed reports whether an error proves that the client broke the HTTP
// protocol. A slow client proves nothing. Neither does a connection that breaks
// within a header.
func isMalformed(err error) bool {
	kind := errs.KindOf(err)
	return err != error(errIncomplete) && kind != errs.RequestTimeout && kind != errs.Unavailable
}
