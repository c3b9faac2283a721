package broker

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/rpc/client"
)

// A socketPool holds the TCP sockets that the dispatcher prepared for later
// connections.
type socketPool struct {
	mu      sync.Mutex // guards the sockets of all daemons
	sockets map[work.DialBatch]*daemonSockets
}

// daemonSockets has the sockets for one daemon.
type daemonSockets struct {
	list        []pooledSocket // oldest first
	requestedAt time.Time      // when sockets were last requested
	windowStart time.Time      // start of the one-second window in which connections are counted
	count       int            // number of connections since windowStart
	low         int            // more sockets are requested when only this many are left
	disabled    bool           // set if sockets do not connect with their first write on this kernel
}

// A pooledSocket is a socket that connects with its first write, or that is
// already connected to a daemon on this machine.
type pooledSocket struct {
	fd      int
	addedAt time.Time
	server  uint32 // uid of the daemon that the socket is connected to; ipc.NoID if it is not connected
	at      work.At
}

const (
	// busyRate is the number of new connections per second at which the pool
	// begins to request sockets.
	busyRate = 32
	// maxAge is how long an unconnected socket may stay in the pool. Such a
	// socket occupies a local port, and keeps the route that was chosen when it
	// was made.
	maxAge = 2 * time.Second
	// maxAgeConnected is how long a connected socket may stay in the pool. The
	// daemon has already accepted it.
	maxAgeConnected = 500 * time.Millisecond
	// requestTimeout is how long the worker waits for requested sockets before
	// it requests them again.
	requestTimeout = 50 * time.Millisecond
)

// ofLocked returns the sockets for one daemon.
func (p *socketPool) ofLocked(daemon work.DialBatch) *daemonSockets {
	s := p.sockets[daemon]
	if s == nil {
		if p.sockets == nil {
			p.sockets = map[work.DialBatch]*daemonSockets{}
		}
		s = new(daemonSockets)
		p.sockets[daemon] = s
	}
	return s
}

// put adds sockets from the dispatcher. The server argument is the uid of the
// daemon that the sockets are connected to, or ipc.NoID if they are not
// connected.
func (p *socketPool) put(daemon work.DialBatch, fds []int, server uint32, at work.At, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.ofLocked(daemon)
	for _, fd := range fds {
		s.list = append(s.list, pooledSocket{fd, now, server, at})
	}
	s.requestedAt = time.Time{}
	s.low = len(fds) / 2
	limit := maxAge
	if server != ipc.NoID {
		limit = maxAgeConnected
	}
	time.AfterFunc(limit, func() { p.expire(daemon, now) })
}

// expire closes the sockets that arrived at or before the given time.
func (p *socketPool) expire(daemon work.DialBatch, cutoff time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.ofLocked(daemon)
	for len(s.list) > 0 && !s.list[0].addedAt.After(cutoff) {
		unix.Close(s.list[0].fd)
		s.list = s.list[1:]
	}
}

// take returns a socket if the pool has one. If more is true, the caller should
// request more sockets.
func (p *socketPool) take(daemon work.DialBatch, now time.Time) (socket pooledSocket, ok, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.ofLocked(daemon)
	if now.Sub(s.windowStart) > time.Second {
		s.windowStart, s.count = now, 0
	}
	s.count++
	if len(s.list) > 0 {
		socket, ok = s.list[0], true
		s.list = s.list[1:]
	}
	more = !s.disabled && s.count >= busyRate && len(s.list) <= s.low && now.Sub(s.requestedAt) > requestTimeout
	if more {
		s.requestedAt = now
	}
	return socket, ok, more
}

// disable closes the sockets for one daemon, and makes the pool request no more
// of them.
func (p *socketPool) disable(daemon work.DialBatch) {
	p.mu.Lock()
	p.ofLocked(daemon).disabled = true
	p.mu.Unlock()
	p.expire(daemon, time.Now())
}

// isIdle reports whether the daemon has neither closed the connection nor sent
// anything.
func isIdle(fd int) bool {
	var b [1]byte
	_, _, err := unix.Recvfrom(fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return err == unix.EAGAIN
}

// errNotStarted means that a socket did not connect with its first write.
var errNotStarted = errors.New("the socket did not start to connect")

// startConnect connects a socket of the pool. The first write starts the TCP
// handshake, even if it writes no bytes.
func startConnect(ctx context.Context, fd int, a client.Address) (net.Conn, error) {
	_, err := unix.Write(fd, nil)
	if err == nil { // either the socket is connected already, or the write had no effect
		if _, err := syscall.Getpeername(fd); err != nil {
			unix.Close(fd)
			return nil, errNotStarted
		}
	}
	if err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		return nil, dialError(a, os.NewSyscallError("connect", err))
	}
	return completeDial(ctx, fd, ipc.NoID, a)
}
