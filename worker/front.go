package worker

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"sync"
	"time"
)

// front is the connection of an inetd run. It stands before http.Server, which refuses a request
// without a Host and takes the end of the input for a client that has gone: here a Host is
// added where there is none, the next request is read when the one before is answered, and
// the end comes when all of them are.
//
// What it passes on is framed as http.Server's own parser has framed it: lines of the header go
// through as they are, each when it comes, so that limits of size and time hold as ever; a
// body is cut by the same parser's word, and chunks are made anew.
type front struct {
	net.Conn          // the client
	server   net.Conn // what http.Server reads
	feed     net.Conn // the other end of that
	in       *bufio.Reader
	rested   chan struct{} // gets a token when an answer is out
	closed   chan struct{} // closed when no more is answered
	once     sync.Once

	mu       sync.Mutex
	busy     bool // a request was begun and is not answered
	draining bool
}

// newFront stands before c; limit is the most bytes of a header.
func newFront(c net.Conn, limit int) *front {
	f := &front{Conn: c, in: bufio.NewReaderSize(c, limit+16<<10), rested: make(chan struct{}, 1), closed: make(chan struct{})}
	f.server, f.feed = net.Pipe()
	return f
}

// run passes on one request after the other until there is no next one.
func (f *front) run() {
	defer f.feed.Close()
	for f.request() == nil {
		select {
		case <-f.rested:
		case <-f.closed:
			return
		}
		if f.setBusy(false) {
			return
		}
	}
}

// rest is called when an answer is out.
func (f *front) rest() {
	select {
	case f.rested <- struct{}{}:
	default:
	}
}

func (f *front) setBusy(is bool) (draining bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy = is
	return f.draining
}

// drain ends the connection as soon as nothing is being read or answered.
func (f *front) drain() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.draining = true
	if !f.busy {
		f.feed.Close()
	}
}

var errFraming = errors.New("where the request ends is not known")

// request passes on the next request. An error says that no other can follow.
func (f *front) request() error {
	head, err := f.header()
	if err != nil {
		return err
	}
	in := bytes.NewReader(head)
	all := bufio.NewReader(in)
	r, err := http.ReadRequest(all)
	if err != nil || in.Len()+all.Buffered() > 0 {
		<-f.closed // http.Server has read the same, and says so
		return errFraming
	}
	switch {
	case len(r.TransferEncoding) > 0:
		return f.chunks()
	case r.ContentLength > 0:
		_, err = io.CopyN(f.feed, f.in, r.ContentLength)
		return err
	case r.ContentLength < 0:
		return errFraming
	}
	return nil
}

// header passes on a request's line and header and returns them as they were passed on. Empty
// lines before it are left out: a person types them.
func (f *front) header() (head []byte, err error) {
	whole := true // what was read last ends a line
	for {
		line, err := f.in.ReadSlice('\n')
		empty := whole && isEmpty(line)
		whole = err == nil
		if len(head) == 0 && empty {
			continue
		}
		if len(line) > 0 && f.setBusy(true) && len(head) == 0 {
			return nil, io.EOF
		}
		if empty {
			line = append(missingHost(head), line...)
		}
		head = append(head, line...)
		if len(line) > 0 { // to write nothing is to wait for a reader
			if _, err := f.feed.Write(line); err != nil {
				return nil, err
			}
		}
		if err != nil && err != bufio.ErrBufferFull {
			return nil, err
		}
		if empty {
			return head, nil
		}
	}
}

func isEmpty(line []byte) bool { return string(line) == "\n" || string(line) == "\r\n" }

// missingHost is the line that http.Server asks for and the header of an HTTP/1.1 request has
// not. It is empty, as of a URL without a host; one in the request's line counts anyway.
func missingHost(head []byte) []byte {
	line, fields, _ := bytes.Cut(head, []byte("\n"))
	if !bytes.HasSuffix(bytes.TrimSuffix(line, []byte("\r")), []byte(" HTTP/1.1")) {
		return nil
	}
	in := io.MultiReader(bytes.NewReader(fields), bytes.NewReader([]byte("\r\n")))
	h, err := textproto.NewReader(bufio.NewReader(in)).ReadMIMEHeader()
	if err != nil || h["Host"] != nil {
		return nil
	}
	return []byte("Host:\r\n")
}

// chunks passes on a chunked body, in chunks of our own. What comes behind the last one is read
// by nobody, and left out. Where a chunk is broken, ours is.
func (f *front) chunks() error {
	body, buf := httputil.NewChunkedReader(f.in), make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if _, err := fmt.Fprintf(f.feed, "%x\r\n%s\r\n", n, buf[:n]); err != nil {
				return err
			}
		}
		switch err {
		case nil:
			continue
		case io.EOF:
			err = f.trailer()
		}
		if err == nil {
			_, err = io.WriteString(f.feed, "0\r\n\r\n")
			return err
		}
		if err != io.ErrUnexpectedEOF && err != io.EOF {
			_, _ = io.WriteString(f.feed, "broken\r\n")
			<-f.closed
		}
		return err
	}
}

// trailer reads the rest of a chunked body, which must fit the buffer.
func (f *front) trailer() error {
	for read := 0; read < f.in.Size(); {
		line, err := f.in.ReadSlice('\n')
		if err != nil || isEmpty(line) {
			return err
		}
		read += len(line)
	}
	return errFraming
}

// Read is http.Server's, of what was passed on.
func (f *front) Read(p []byte) (int, error) { return f.server.Read(p) }

// NetConn is the connection below.
func (f *front) NetConn() net.Conn { return f.Conn }

// SetReadDeadline is for Read.
func (f *front) SetReadDeadline(t time.Time) error { return f.server.SetReadDeadline(t) }

// SetDeadline is for Read and Write.
func (f *front) SetDeadline(t time.Time) error {
	return errors.Join(f.server.SetReadDeadline(t), f.Conn.SetWriteDeadline(t))
}

// CloseWrite says that no more comes.
func (f *front) CloseWrite() error {
	if half, ok := f.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close closes the connection.
func (f *front) Close() error {
	f.once.Do(func() { close(f.closed) })
	return errors.Join(f.server.Close(), f.Conn.Close())
}
