package worker

import (
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/auth"
	"schedrestd/ipc"
)

// takeStreams puts standard input and output of an inetd run where http.Server accepts them as
// one connection.
func (s *server) takeStreams(in, out int, m *ipc.Streams) {
	s.held.Add(1)
	s.watch.take(m.ID)
	p := auth.Peer{Network: m.Network.String(), Addr: m.Addr, Listener: m.Listener, UID: m.UID, GID: m.GID, PID: m.PID, Vouched: m.Vouched}
	client := &streams{in: in, out: out}
	s.present(&conn{Conn: client, peer: p, stall: s.stall, done: func() {
		s.watch.end(m.ID)
		s.held.Done()
		s.exit <- client.status()
	}})
}

// ended is what is called when a connection is closed: its slot is free, and an inetd run over.
func (s *server) ended(id uint64) func() {
	return func() {
		s.watch.end(id)
		s.held.Done()
		if s.inetd {
			s.exit <- 0
		}
	}
}

// present puts a connection without TLS where http.Server accepts it.
func (s *server) present(c *conn) {
	if !s.inetd {
		s.queue.put(s.own.speak(c, c.peer))
		return
	}
	f := newFront(c, s.http.MaxHeaderBytes)
	s.front.Store(f)
	go f.run()
	s.queue.put(s.own.speak(f, c.peer))
}

// streams is standard input and output as a connection. Both may be shared with the shell that
// started us and whatever runs beside us there: they stay blocking, since O_NONBLOCK would be
// everybody's, and a Read can't be interrupted. It is for one reader, which leaves it to the
// process's end to wake it.
type streams struct {
	in, out int

	mu    sync.Mutex
	until time.Time // for a Write
	over  bool
	lost  error // why a Write failed
}

// status is that of an inetd run: who runs it in a script would else take an answer for given that nobody has.
func (s *streams) status() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil {
		return 0
	}
	slog.Error("an answer could not be written to standard output", "error", s.lost, "hint", "what was asked for may be done all the same")
	return 1
}

// Read reads standard input. A terminal that is hung up has ended.
func (s *streams) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(s.in, p)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN: // somebody else has made it so
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

// piece is how much a pipe takes without waiting when it says that it takes something: PIPE_BUF.
const piece = 4096

// Write writes to standard output, in pieces, each of them when there is room.
func (s *streams) Write(p []byte) (n int, err error) {
	defer func() {
		if err != nil {
			s.mu.Lock()
			s.lost = err
			s.mu.Unlock()
		}
	}()
	for len(p) > 0 {
		if err := s.room(); err != nil {
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

// room waits until something can be written, or nobody is there to read it.
func (s *streams) room() error {
	for {
		s.mu.Lock()
		until, over := s.until, s.over
		s.mu.Unlock()
		wait := -1
		if !until.IsZero() {
			wait = int(max(0, time.Until(until).Milliseconds()))
		}
		if over {
			return net.ErrClosed
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(s.out), Events: unix.POLLOUT}}, wait)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n == 0:
			return timeout{}
		default:
			return nil
		}
	}
}

// timeout is a Write that had no room for too long.
type timeout struct{}

func (timeout) Error() string   { return "standard output takes nothing" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

// Close closes standard output: whoever reads it sees the end. Standard input may be waited
// for right now, and stays.
func (s *streams) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return net.ErrClosed
	}
	s.over = true
	return unix.Close(s.out)
}

// CloseWrite can't be had: nobody is told that there is more to come from the other side.
func (s *streams) CloseWrite() error { return unix.ENOTSOCK }

// LocalAddr is for net.Conn.
func (s *streams) LocalAddr() net.Addr { return &net.UnixAddr{Name: "stdout", Net: "stdio"} }

// RemoteAddr is for net.Conn.
func (s *streams) RemoteAddr() net.Addr { return &net.UnixAddr{Name: "stdin", Net: "stdio"} }

// SetDeadline is SetWriteDeadline.
func (s *streams) SetDeadline(t time.Time) error { return s.SetWriteDeadline(t) }

// SetReadDeadline has no effect: see front.
func (s *streams) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline bounds each Write.
func (s *streams) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = t
	return nil
}
