package worker

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/auth"
	"schedrestd/internal/fdpass/unixconn"
	"schedrestd/ipc"
)

// A conn is a connection that the dispatcher passed to this worker. Only the
// first call of Close calls the function done. Write fails if the client stops
// reading for too long.
type conn struct {
	net.Conn
	id      uint64 // the number that the dispatcher gave it; 0 for standard input and output, which are not tracked
	stdioID uint64 // the number that the dispatcher gave to standard input and output
	peer    auth.Peer
	stall   time.Duration
	done    func()
	once    sync.Once
	err     error

	shortStall    time.Duration // stall limit while other clients wait
	shortened     atomic.Bool   // whether shortStall applies
	pendingWrites atomic.Int32
}

// newConn returns a conn for the descriptor fd. The conn's Close closes fd, and
// then calls done.
func newConn(fd int, m *ipc.Connection, stall time.Duration, done func()) (*conn, error) {
	f := os.NewFile(uintptr(fd), "connection")
	c, err := net.FileConn(f) // duplicates fd; the duplicate is non-blocking, with TCP_NODELAY and keepalive
	f.Close()
	if err != nil {
		return nil, fmt.Errorf("take over a connection: %w", err)
	}
	if local, ok := c.(*net.UnixConn); ok {
		if c, err = unixconn.Wrap(local); err != nil {
			local.Close()
			return nil, fmt.Errorf("take over a connection: %w", err)
		}
	}
	p := auth.Peer{Network: m.Network.String(), Addr: m.Addr, Listener: m.Listener,
		UID: m.UID, GID: m.GID, PID: m.PID, Verified: m.Verified}
	return &conn{Conn: c, id: m.ID, peer: p, stall: stall, shortStall: min(stall, portionTime), done: done}, nil
}

// Write writes p in pieces, and sets a deadline for each. So a long answer may
// take as long as the client keeps reading, but a client that stops reading
// can't keep its slot.
func (c *conn) Write(p []byte) (n int, err error) {
	c.pendingWrites.Add(1)
	defer c.pendingWrites.Add(-1)
	for {
		limit := c.pieceTimeout()
		if err = c.Conn.SetWriteDeadline(time.Now().Add(limit)); err == nil && c.pieceTimeout() != limit { // shorten was called in between
			err = c.Conn.SetWriteDeadline(time.Now().Add(c.pieceTimeout()))
		}
		if err != nil {
			return n, err
		}
		m, err := c.Conn.Write(p[:min(len(p), portion)])
		traffic.sent.Add(uint64(m))
		n, p = n+m, p[m:]
		if err != nil || len(p) == 0 {
			return n, err
		}
	}
}

// Read counts the bytes that the client sends.
func (c *conn) Read(p []byte) (n int, err error) {
	n, err = c.Conn.Read(p)
	traffic.received.Add(uint64(max(0, n)))
	processMeter.Load().scheduleFlush()
	return n, err
}

// pieceTimeout returns the time limit for each piece of an answer.
func (c *conn) pieceTimeout() time.Duration {
	if c.shortened.Load() {
		return c.shortStall
	}
	return c.stall
}

// shorten shortens the time limit for each piece of the answer, because other
// clients are waiting. The method restore undoes this.
func (c *conn) shorten() {
	if !c.shortened.Swap(true) && c.isWriting() {
		_ = c.Conn.SetWriteDeadline(time.Now().Add(c.shortStall))
	}
}

// isWriting reports whether a Write is in progress.
func (c *conn) isWriting() bool { return c.pendingWrites.Load() > 0 }

func (c *conn) restore() { c.shortened.Store(false) }

// hasUnread reports whether the client has sent bytes that have not been read
// yet.
func (c *conn) hasUnread() (unread bool) {
	socket, ok := c.Conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		n, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		unread = err == nil && n > 0
	})
	return unread
}

// isHungUp reports whether the client can neither send nor receive. It returns
// false if the client has only shut down its sending side, because such a
// client may still read its answer. The kernel reports a hangup when a reset
// has arrived, when both directions are closed, or when a UNIX peer has closed
// its socket.
func (c *conn) isHungUp() bool {
	events := c.poll(0)
	return events&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
}

// poll returns the events of the connection that have happened. If it is not a
// socket, the result is 0.
func (c *conn) poll(events int16) (happened int16) {
	socket, ok := c.Conn.(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := socket.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
			if n, err := unix.Poll(fds, 0); err == nil && n == 1 {
				happened = fds[0].Revents
			}
		})
	}
	if err != nil { // the connection was closed
		return unix.POLLNVAL
	}
	return happened
}

// connKey is the context key of a request's conn.
type connKey struct{}

// hasHalfClosed reports whether the client of a request has shut down the
// sending side of its connection. This does not prove that the client is gone.
// It may have closed the TCP connection, but it may also be waiting for its
// answer. So only a few kinds of requests may be abandoned for this reason. For
// standard input, the result is always false, because the input may end before
// the answer is sent.
func hasHalfClosed(ctx context.Context) bool {
	c, ok := ctx.Value(connKey{}).(*conn)
	return ok && c.id != 0 && c.poll(unix.POLLRDHUP) != 0
}

// CloseWrite shuts down the sending side, so that the client can read an error
// before the connection is reset.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close closes the connection, and then calls done. The order ensures that the
// slot is not freed before the descriptor.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.err = c.Conn.Close()
		c.done()
	})
	return c.err
}
