// Package clientconn has the connections between clients and a worker: those
// that the dispatcher passes to the worker, and standard input and output.
package clientconn

import (
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/auth"
	"schedrestd/gateway/worker/count"
	"schedrestd/internal/fdpass/unixconn"
	"schedrestd/ipc"
)

// A Conn is a connection to a client. Write fails if the client stops reading
// for too long. The exported fields must not change once the connection is used.
type Conn struct {
	net.Conn
	ID     uint64 // the number that the dispatcher gave it
	Peer   auth.Peer
	Stall  time.Duration // how long a Write may wait for the client to read one Portion
	Counts *count.Counters
	Closed func() // called by the first call of Close, after the descriptor was closed

	once sync.Once
	err  error

	shortStall    time.Duration             // stall limit while other clients wait
	shortened     atomic.Bool               // whether shortStall applies
	deadline      atomic.Pointer[time.Time] // as set by SetWriteDeadline; nil or zero for none
	pendingWrites atomic.Int32
}

// A client determines how fast it sends a body and reads an answer. This is
// harmless while no other client waits. While another connection waits to be
// admitted, or another request waits for its turn, the client must make
// progress: it must send or read one Portion in each PortionTime. If this were
// not required, a few clients that hardly make progress could keep all others
// out. With HTTP/2, even one client could.
const (
	Portion     = 64 << 10 // in bytes
	PortionTime = 5 * time.Second
)

// New returns a Conn for the descriptor fd, with the facts in m. The Conn's
// Close closes fd.
func New(fd int, m *ipc.Connection, stall time.Duration) (*Conn, error) {
	if m.Network == ipc.TCP {
		c, err := newTCP(fd, m)
		return Wrap(c, m, stall), err
	}
	f := os.NewFile(uintptr(fd), "connection")
	c, err := net.FileConn(f) // duplicates fd
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
	return Wrap(c, m, stall), nil
}

// Wrap returns a Conn for c, with the facts in m.
func Wrap(c net.Conn, m *ipc.Connection, stall time.Duration) *Conn {
	p := auth.Peer{Network: m.Network.String(), Addr: m.Addr, Listener: m.Listener,
		UID: m.UID, GID: m.GID, PID: m.PID, Verified: m.Verified}
	return &Conn{Conn: c, ID: m.ID, Peer: p, Stall: stall, Counts: new(count.Counters), Closed: func() {}, shortStall: min(stall, PortionTime)}
}

// RemoteAddr returns the client's address from the dispatcher. The one of the
// kernel is missing, and that of net is nil, once the client has reset the
// connection.
func (c *Conn) RemoteAddr() net.Addr { return addr{c.Peer.Network, c.Peer.Addr} }

type addr struct{ network, text string }

func (a addr) Network() string { return a.network }
func (a addr) String() string  { return a.text }

// Write writes p in pieces, and sets a deadline for each. So a long answer may
// take as long as the client keeps reading, but a client that stops reading
// can't keep its slot.
func (c *Conn) Write(p []byte) (n int, err error) {
	c.pendingWrites.Add(1)
	defer c.pendingWrites.Add(-1)
	for {
		limit := c.pieceTimeout()
		if err = c.limitPiece(limit); err == nil && c.pieceTimeout() != limit { // Shorten was called in between
			err = c.limitPiece(c.pieceTimeout())
		}
		if err != nil {
			return n, err
		}
		m, err := c.Conn.Write(p[:min(len(p), Portion)])
		c.Counts.Sent.Add(uint64(max(0, m)))
		n, p = n+m, p[m:]
		if err != nil || len(p) == 0 {
			return n, err
		}
	}
}

// limitPiece sets the deadline for a piece of a Write.
func (c *Conn) limitPiece(timeout time.Duration) error {
	until := time.Now().Add(timeout)
	if t := c.deadline.Load(); t != nil && !t.IsZero() && t.Before(until) {
		until = *t
	}
	return c.Conn.SetWriteDeadline(until)
}

// SetWriteDeadline makes each Write end by t, until Restore is called. Package
// crypto/tls relies on this when it closes a connection: it waits at most five
// seconds until the client has made room for the end of the stream.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.deadline.Store(&t)
	return c.Conn.SetWriteDeadline(t)
}

// Read counts the bytes that the client sends.
func (c *Conn) Read(p []byte) (n int, err error) {
	n, err = c.Conn.Read(p)
	c.Counts.ReceivedBytes(n)
	return n, err
}

// pieceTimeout returns the time limit for each piece of an answer.
func (c *Conn) pieceTimeout() time.Duration {
	if c.shortened.Load() {
		return c.shortStall
	}
	return c.Stall
}

// Shorten shortens the time limit for each piece of the answer, because other
// clients are waiting. The method Restore undoes this.
func (c *Conn) Shorten() {
	if !c.shortened.Swap(true) && c.IsWriting() {
		_ = c.Conn.SetWriteDeadline(time.Now().Add(c.shortStall))
	}
}

// IsWriting reports whether a Write is in progress.
func (c *Conn) IsWriting() bool { return c.pendingWrites.Load() > 0 }

// Restore ends the effect of Shorten and SetWriteDeadline.
func (c *Conn) Restore() {
	c.shortened.Store(false)
	c.deadline.Store(nil)
}

// HasUnread reports whether the client has sent bytes that have not been read
// yet.
func (c *Conn) HasUnread() (unread bool) {
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

// IsHungUp reports whether the client can neither send nor receive. It returns
// false if the client has only shut down its sending side, because such a
// client may still read its answer. The kernel reports a hangup when a reset
// has arrived, when both directions are closed, or when a UNIX peer has closed
// its socket.
func (c *Conn) IsHungUp() bool {
	events := c.poll(0)
	return events&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
}

// poll returns the events of the connection that have happened. If it is not a
// socket, the result is 0.
func (c *Conn) poll(events int16) (happened int16) {
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

// HasHalfClosed reports whether the client has shut down the sending side of the
// connection. This does not prove that the client is gone. It may have closed the
// TCP connection, but it may also be waiting for its answer. So only a few kinds
// of requests may be abandoned for this reason. For standard input, which is no
// socket, the result is always false: the input may end before the answer is sent.
func (c *Conn) HasHalfClosed() bool { return c.poll(unix.POLLRDHUP) != 0 }

// CloseWrite shuts down the sending side, so that the client can read an error
// before the connection is reset.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close closes the connection, and then calls Closed. The order ensures that the
// slot is not freed before the descriptor.
func (c *Conn) Close() error {
	c.once.Do(func() {
		c.err = c.Conn.Close()
		c.Closed()
	})
	return c.err
}
