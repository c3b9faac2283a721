package worker

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
	mu        sync.Mutex
	upstreams map[work.DialBatch]*upstreamPool
}

// upstreamPool has the sockets for one daemon.
type upstreamPool struct {
	mu          sync.Mutex
	sockets     []pooledSocket // oldest first
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

// upstream returns the pool of sockets for one daemon. The pool may be empty.
func (s *socketPool) upstream(key work.DialBatch) *upstreamPool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.upstreams[key]
	if p == nil {
		if s.upstreams == nil {
			s.upstreams = map[work.DialBatch]*upstreamPool{}
		}
		p = new(upstreamPool)
		s.upstreams[key] = p
	}
	return p
}

// put adds sockets from the dispatcher. The server argument is the uid of the
// daemon that the sockets are connected to, or ipc.NoID if they are not
// connected.
func (p *upstreamPool) put(fds []int, server uint32, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, fd := range fds {
		p.sockets = append(p.sockets, pooledSocket{fd, now, server})
	}
	p.requestedAt = time.Time{}
	p.low = len(fds) / 2
	limit := maxAge
	if server != ipc.NoID {
		limit = maxAgeConnected
	}
	time.AfterFunc(limit, func() { p.expire(now) })
}

// expire closes the sockets that arrived at or before the given time.
func (p *upstreamPool) expire(cutoff time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.sockets) > 0 && !p.sockets[0].addedAt.After(cutoff) {
		unix.Close(p.sockets[0].fd)
		p.sockets = p.sockets[1:]
	}
}

// take returns a socket if the pool has one. If more is true, the caller should
// request more sockets.
func (p *upstreamPool) take(now time.Time) (s pooledSocket, ok, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.windowStart) > time.Second {
		p.windowStart, p.count = now, 0
	}
	p.count++
	if len(p.sockets) > 0 {
		s, ok = p.sockets[0], true
		p.sockets = p.sockets[1:]
	}
	more = !p.disabled && p.count >= busyRate && len(p.sockets) <= p.low && now.Sub(p.requestedAt) > requestTimeout
	if more {
		p.requestedAt = now
	}
	return s, ok, more
}

// disable closes the sockets of the pool, and makes the pool request no more.
func (p *upstreamPool) disable() {
	p.mu.Lock()
	p.disabled = true
	p.mu.Unlock()
	p.expire(time.Now())
}

// pooledConn takes a socket from the pool for one daemon, and returns a
// connection that uses it. It returns nil if the pool is empty, or if its
// sockets do not connect with the first write.
func (b *Broker) pooledConn(ctx context.Context, batch work.DialBatch, a client.Address) (net.Conn, error) {
	pool := b.pool.upstream(batch)
	for {
		s, ok, more := pool.take(time.Now())
		if more {
			_ = b.send(&batch) // without sockets, the worker sends a Dial for each connection
		}
		switch {
		case !ok:
			return nil, nil
		case s.server == ipc.NoID:
			nc, err := startConnect(ctx, s.fd, a)
			if err == errNotStarted {
				pool.disable()
				return nil, nil
			}
			return nc, err
		case isIdle(s.fd):
			return newDaemonConn(s.fd, s.server, a), nil
		}
		unix.Close(s.fd)
	}
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
