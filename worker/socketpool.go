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

// socketPool has the TCP sockets that the dispatcher has prepared for future
// connections.
type socketPool struct {
	mu        sync.Mutex
	upstreams map[work.DialBatch]*upstreamPool
}

// upstreamPool has the sockets for one upstream.
type upstreamPool struct {
	mu      sync.Mutex
	sockets []pooledSocket // oldest first
	ordered time.Time      // when sockets were last requested
	began   time.Time      // start of the second in which connections are counted
	count   int
	low     int  // more sockets are requested when only this many are left
	useless bool // on this kernel, the first write does not connect a socket
}

// pooledSocket is a socket that connects with its first write, or a socket that
// is already connected to a daemon on this machine.
type pooledSocket struct {
	fd     int
	came   time.Time
	server uint32 // uid of the daemon that the socket is connected to; ipc.NoID if it is not connected
}

const (
	// busy is the number of connections per second from which a pool is
	// worthwhile.
	busy = 32
	// fresh is the time for which an unconnected socket may stay in the pool.
	// It occupies a local port, and its route was chosen when it was made.
	fresh = 2 * time.Second
	// freshConnected is the same time for a connected socket, which the daemon
	// has already accepted.
	freshConnected = 500 * time.Millisecond
	// overdue is the time after which the worker requests sockets again if none
	// arrived.
	overdue = 50 * time.Millisecond
)

// upstream returns the pool, possibly empty, for one upstream.
func (s *socketPool) upstream(way work.DialBatch) *upstreamPool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.upstreams[way]
	if h == nil {
		if s.upstreams == nil {
			s.upstreams = map[work.DialBatch]*upstreamPool{}
		}
		h = new(upstreamPool)
		s.upstreams[way] = h
	}
	return h
}

// put adds sockets that came from the dispatcher. The parameter server is the
// uid of the daemon that the sockets are connected to, or ipc.NoID if they are
// not connected.
func (h *upstreamPool) put(fds []int, server uint32, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, fd := range fds {
		h.sockets = append(h.sockets, pooledSocket{fd, now, server})
	}
	h.ordered = time.Time{}
	h.low = len(fds) / 2
	limit := fresh
	if server != ipc.NoID {
		limit = freshConnected
	}
	time.AfterFunc(limit, func() { h.clear(now) })
}

// clear closes the sockets that arrived at or before the given time.
func (h *upstreamPool) clear(then time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.sockets) > 0 && !h.sockets[0].came.After(then) {
		unix.Close(h.sockets[0].fd)
		h.sockets = h.sockets[1:]
	}
}

// take returns a socket, if the pool has one, and whether to request more
// sockets.
func (h *upstreamPool) take(now time.Time) (s pooledSocket, ok, more bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Sub(h.began) > time.Second {
		h.began, h.count = now, 0
	}
	h.count++
	if len(h.sockets) > 0 {
		s, ok = h.sockets[0], true
		h.sockets = h.sockets[1:]
	}
	if more = !h.useless && h.count >= busy && len(h.sockets) <= h.low && now.Sub(h.ordered) > overdue; more {
		h.ordered = now
	}
	return s, ok, more
}

// giveUp stops requesting sockets.
func (h *upstreamPool) giveUp() {
	h.mu.Lock()
	h.useless = true
	h.mu.Unlock()
	h.clear(time.Now())
}

// pooledConn takes a socket from the pool of an upstream and returns a
// connection over it. It returns nil if the pool is empty, or if its sockets do
// not connect with the first write.
func (e *Broker) pooledConn(ctx context.Context, way work.DialBatch, a client.Address) (net.Conn, error) {
	h := e.pool.upstream(way)
	for {
		s, ok, more := h.take(time.Now())
		if more {
			_ = e.send(&way) // a worker that gets no sockets sends a Dial for each connection
		}
		switch {
		case !ok:
			return nil, nil
		case s.server == ipc.NoID:
			nc, err := start(ctx, s.fd, a)
			if err == errIdle {
				h.giveUp()
				return nil, nil
			}
			return nc, err
		case silent(s.fd):
			return newDaemonConn(s.fd, s.server, a), nil
		}
		unix.Close(s.fd)
	}
}

// silent reports whether the daemon at the other end has neither closed the
// connection nor sent anything.
func silent(fd int) bool {
	var b [1]byte
	_, _, err := unix.Recvfrom(fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return err == unix.EAGAIN
}

// errIdle reports that a socket's first write did not start its connection.
var errIdle = errors.New("the socket did not start to connect")

// start connects a socket of the pool. Its first write starts the TCP
// handshake, so a write of no bytes is sufficient.
func start(ctx context.Context, fd int, a client.Address) (net.Conn, error) {
	_, err := unix.Write(fd, nil)
	if err == nil { // either the socket is connected already, or the write had no effect
		if _, err := syscall.Getpeername(fd); err != nil {
			unix.Close(fd)
			return nil, errIdle
		}
	}
	if err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		return nil, undialed(a, os.NewSyscallError("connect", err))
	}
	return complete(ctx, fd, ipc.NoID, a)
}
