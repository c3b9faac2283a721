// Package stdio makes a connection of standard input and output, for inetd mode.
package stdio

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Conn is a connection that consists of standard input and output.
// Both stay blocking, because the shell that started us, and other children of
// that shell, may share them. O_NONBLOCK would affect all these processes. Even
// so, Read has a deadline, because a separate goroutine reads the input, at
// most one buffer ahead. That goroutine may be blocked in a read until the
// process exits.
type Conn struct {
	in, out int
	input   net.Conn // pipe end that Read reads; the goroutine writes to the other end

	writeDeadline atomic.Int64 // in nanoseconds since 1970, or 0
	closed        atomic.Bool
	writeErr      atomic.Pointer[error] // error of the last Write that failed
}

// New returns the connection that reads the descriptor in and writes the
// descriptor out.
func New(in, out int) *Conn {
	s := &Conn{in: in, out: out}
	var feed net.Conn
	s.input, feed = net.Pipe()
	go s.readAhead(feed)
	return s
}

// readAhead passes standard input on to Read.
func (s *Conn) readAhead(feed net.Conn) {
	defer feed.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := s.readInput(buf)
		if err != nil {
			return
		}
		if _, err := feed.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (s *Conn) Read(p []byte) (int, error) { return s.input.Read(p) }

// WriteError returns the error of the last Write that failed, or nil.
func (s *Conn) WriteError() error {
	if err := s.writeErr.Load(); err != nil {
		return *err
	}
	return nil
}

// readInput reads standard input. If it is a terminal, a hangup counts as the
// end of the input.
func (s *Conn) readInput(p []byte) (int, error) {
	for {
		n, err := unix.Read(s.in, p)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN: // another process has made it non-blocking
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(s.in), Events: unix.POLLIN}}, -1); err != nil && err != unix.EINTR {
				return 0, err
			}
		case n == 0 && err == nil && len(p) > 0, err == unix.EIO:
			return 0, io.EOF
		default:
			return max(n, 0), err
		}
	}
}

// piece is PIPE_BUF, the number of bytes that can be written to a pipe without
// blocking after poll has reported it as writable.
const piece = 4096

// Write writes p to standard output in pieces. It writes each piece when
// standard output has space for it.
func (s *Conn) Write(p []byte) (n int, err error) {
	defer func() {
		if err != nil {
			s.writeErr.Store(&err)
		}
	}()
	for len(p) > 0 {
		if err := s.waitWritable(); err != nil {
			return n, err
		}
		m, err := unix.Write(s.out, p[:min(len(p), piece)])
		switch {
		case err == unix.EINTR, err == unix.EAGAIN:
			continue
		case err != nil:
			return n, err
		}
		n, p = n+m, p[m:]
	}
	return n, nil
}

// waitWritable waits until standard output has space, or its reader is gone.
func (s *Conn) waitWritable() error {
	for {
		wait := -1
		if deadline := s.writeDeadline.Load(); deadline != 0 {
			wait = int(max(0, time.Until(time.Unix(0, deadline)).Milliseconds()))
		}
		if s.closed.Load() {
			return net.ErrClosed
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(s.out), Events: unix.POLLOUT}}, wait)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n == 0:
			return timeoutError{}
		default:
			return nil
		}
	}
}

// timeoutError is the error of a Write whose deadline has passed.
type timeoutError struct{}

func (timeoutError) Error() string   { return "standard output is blocked" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

// Close closes standard output, so that its reader notices the end. It leaves
// standard input open, because a goroutine may be reading it.
func (s *Conn) Close() error {
	if s.closed.Swap(true) {
		return net.ErrClosed
	}
	_ = s.input.Close()
	return unix.Close(s.out)
}

// CloseWrite fails, because standard output can't be shut down without closing
// it.
func (s *Conn) CloseWrite() error { return unix.ENOTSOCK }

func (s *Conn) LocalAddr() net.Addr { return &net.UnixAddr{Name: "stdout", Net: "stdio"} }

func (s *Conn) RemoteAddr() net.Addr { return &net.UnixAddr{Name: "stdin", Net: "stdio"} }

// SetDeadline sets the deadlines of reads and writes.
func (s *Conn) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// SetReadDeadline sets the deadline of Read.
func (s *Conn) SetReadDeadline(t time.Time) error { return s.input.SetReadDeadline(t) }

// SetWriteDeadline sets the deadline of each Write.
func (s *Conn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		s.writeDeadline.Store(0)
	} else {
		s.writeDeadline.Store(t.UnixNano())
	}
	return nil
}
