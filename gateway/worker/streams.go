package worker

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/auth"
	"schedrestd/ipc"
)

// serveStdio serves standard input and output as one connection, in inetd mode.
func (s *server) serveStdio(in, out int, m *ipc.StdioConnection) {
	s.openConns.Add(1)
	s.tracker.track(m.ID)
	p := auth.Peer{Network: m.Network.String(), Addr: m.Addr, Listener: m.Listener,
		UID: m.UID, GID: m.GID, PID: m.PID, Verified: m.Verified}
	client := newStreams(in, out)
	s.servePlain(&conn{Conn: client, stdioID: m.ID, peer: p, stall: s.stall, done: func() {
		s.tracker.recordClose(m.ID)
		s.openConns.Done()
		s.exit <- client.status()
	}})
}

// closeFunc returns the function that must be called when connection id is
// closed. That function frees the slot. In inetd mode, it also stops the
// server.
func (s *server) closeFunc(id uint64) func() {
	return func() {
		s.tracker.recordClose(id)
		s.openConns.Done()
		if s.inetd {
			s.exit <- 0
		}
	}
}

// servePlain serves a connection without TLS.
func (s *server) servePlain(c *conn) {
	go s.newHTTP1Conn(c, c).Serve()
}

// The type streams is a connection that consists of standard input and output.
// Both stay blocking, because the shell that started us, and other children of
// that shell, may share them. O_NONBLOCK would affect all these processes. Even
// so, Read has a deadline, because a separate goroutine reads the input, at
// most one buffer ahead. That goroutine may be blocked in a read until the
// process exits.
type streams struct {
	in, out int
	input   net.Conn // pipe end that Read reads; the goroutine writes to the other end

	writeDeadline atomic.Int64 // in nanoseconds since 1970, or 0
	closed        atomic.Bool
	writeErr      atomic.Pointer[error] // error of the last Write that failed
}

func newStreams(in, out int) *streams {
	s := &streams{in: in, out: out}
	var feed net.Conn
	s.input, feed = net.Pipe()
	go s.readAhead(feed)
	return s
}

// readAhead passes standard input on to Read.
func (s *streams) readAhead(feed net.Conn) {
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

func (s *streams) Read(p []byte) (int, error) { return s.input.Read(p) }

// status returns the exit status in inetd mode. It lets a script notice that an
// answer was lost.
func (s *streams) status() int {
	err := s.writeErr.Load()
	if err == nil {
		return 0
	}
	slog.Error("response not written to standard output", "error", *err, "hint", "the request may have been carried out")
	return 1
}

// readInput reads standard input. If it is a terminal, a hangup counts as the
// end of the input.
func (s *streams) readInput(p []byte) (int, error) {
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
func (s *streams) Write(p []byte) (n int, err error) {
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
func (s *streams) waitWritable() error {
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
func (s *streams) Close() error {
	if s.closed.Swap(true) {
		return net.ErrClosed
	}
	_ = s.input.Close()
	return unix.Close(s.out)
}

// CloseWrite fails, because standard output can't be shut down without closing
// it.
func (s *streams) CloseWrite() error { return unix.ENOTSOCK }

func (s *streams) LocalAddr() net.Addr { return &net.UnixAddr{Name: "stdout", Net: "stdio"} }

func (s *streams) RemoteAddr() net.Addr { return &net.UnixAddr{Name: "stdin", Net: "stdio"} }

// SetDeadline sets the deadlines of reads and writes.
func (s *streams) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// SetReadDeadline sets the deadline of Read.
func (s *streams) SetReadDeadline(t time.Time) error { return s.input.SetReadDeadline(t) }

// SetWriteDeadline sets the deadline of each Write.
func (s *streams) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		s.writeDeadline.Store(0)
	} else {
		s.writeDeadline.Store(t.UnixNano())
	}
	return nil
}
