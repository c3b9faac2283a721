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

// socketPool is the pool of TCP sockets that the parent has prepared for connections
// to come.
type socketPool struct {
	mu        sync.Mutex
	upstreams map[work.DialBatch]*upstreamPool
}

// upstreamPool is the sockets for one upstream.
type upstreamPool struct {
	mu      sync.Mutex
	sockets []pooledSocket // the oldest first
	ordered time.Time      // when more were last requested
	began   time.Time      // start of the second in which connections are counted
	count   int
	useless bool // on this kernel they do not connect with the first write
}

// pooledSocket is a socket that connects with its first write.
type pooledSocket struct {
	fd   int
	came time.Time
}

const (
	// busy is how many connections per second make a pool worthwhile.
	busy = 32
	// low is how few sockets are left when more are requested.
	low = ipc.DialBatchSize / 2
	// fresh is how long a socket may wait: it occupies a local port, and its
	// route dates from when it was made.
	fresh = 2 * time.Second
	// overdue is when more are requested again because none arrived.
	overdue = 50 * time.Millisecond
)

// upstream returns the sockets for one upstream; there may be none.
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

// put adds sockets that came from the parent.
func (h *upstreamPool) put(fds []int, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, fd := range fds {
		h.sockets = append(h.sockets, pooledSocket{fd, now})
	}
	h.ordered = time.Time{}
	time.AfterFunc(fresh, func() { h.clear(now) })
}

// clear closes the sockets that came at then or before.
func (h *upstreamPool) clear(then time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.sockets) > 0 && !h.sockets[0].came.After(then) {
		unix.Close(h.sockets[0].fd)
		h.sockets = h.sockets[1:]
	}
}

// take returns a socket, if there is one, and whether to request more.
func (h *upstreamPool) take(now time.Time) (fd int, ok, more bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Sub(h.began) > time.Second {
		h.began, h.count = now, 0
	}
	h.count++
	if len(h.sockets) > 0 {
		fd, ok = h.sockets[0].fd, true
		h.sockets = h.sockets[1:]
	}
	if more = !h.useless && h.count >= busy && len(h.sockets) <= low && now.Sub(h.ordered) > overdue; more {
		h.ordered = now
	}
	return fd, ok, more
}

// giveUp stops requesting sockets.
func (h *upstreamPool) giveUp() {
	h.mu.Lock()
	h.useless = true
	h.mu.Unlock()
	h.clear(time.Now())
}

// pooledConn returns a connection to a over a socket of the pool; nil when there is
// none.
func (e *Broker) pooledConn(ctx context.Context, way work.DialBatch, a client.Address) (net.Conn, error) {
	h := e.pool.upstream(way)
	fd, ok, more := h.take(time.Now())
	if more {
		_ = e.send(&way) // workers that get none send a Dial for each connection
	}
	if !ok {
		return nil, nil
	}
	nc, err := start(ctx, fd, a)
	if err == errIdle {
		h.giveUp()
		return nil, nil
	}
	return nc, err
}

// errIdle reports that a socket's first write did not start its connection.
var errIdle = errors.New("the socket did not start to connect")

// start connects a socket of the pool: its first write starts the handshake,
// and a write of no bytes does nothing else.
func start(ctx context.Context, fd int, a client.Address) (net.Conn, error) {
	_, err := unix.Write(fd, nil)
	if err == nil { // connected at once, or nothing happened
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
