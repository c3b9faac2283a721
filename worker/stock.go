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
	"schedrestd/rpc/client"
)

// stock is the sockets that the parent has readied for connections to come.
type stock struct {
	mu      sync.Mutex
	shelves map[ipc.Stock]*shelf
}

// shelf is the sockets for one way.
type shelf struct {
	mu      sync.Mutex
	spares  []spare   // the oldest first
	ordered time.Time // when more were last asked for
	began   time.Time // of the second in which connections are counted
	count   int
	useless bool // this kernel's don't begin
}

// spare is a socket that connects with its first write.
type spare struct {
	fd   int
	came time.Time
}

const (
	// busy is how many connections in a second are worth a stock.
	busy = 32
	// low is how few spares are left when more are asked for.
	low = ipc.SpareCount / 2
	// fresh is how long one may stand: it has a port of this machine's, and knows the routes of when it was made.
	fresh = 2 * time.Second
	// overdue is when more are asked for again, since none came.
	overdue = 50 * time.Millisecond
)

// shelf is the one for a way; it may be empty.
func (s *stock) shelf(way ipc.Stock) *shelf {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.shelves[way]
	if h == nil {
		if s.shelves == nil {
			s.shelves = map[ipc.Stock]*shelf{}
		}
		h = new(shelf)
		s.shelves[way] = h
	}
	return h
}

// put takes what came from the parent.
func (h *shelf) put(fds []int, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, fd := range fds {
		h.spares = append(h.spares, spare{fd, now})
	}
	h.ordered = time.Time{}
	time.AfterFunc(fresh, func() { h.clear(now) })
}

// clear closes those that have stood since then or longer.
func (h *shelf) clear(then time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.spares) > 0 && !h.spares[0].came.After(then) {
		unix.Close(h.spares[0].fd)
		h.spares = h.spares[1:]
	}
}

// take is a spare, if there is one, and whether more are to be asked for.
func (h *shelf) take(now time.Time) (fd int, ok, more bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Sub(h.began) > time.Second {
		h.began, h.count = now, 0
	}
	h.count++
	if len(h.spares) > 0 {
		fd, ok = h.spares[0].fd, true
		h.spares = h.spares[1:]
	}
	if more = !h.useless && h.count >= busy && len(h.spares) <= low && now.Sub(h.ordered) > overdue; more {
		h.ordered = now
	}
	return fd, ok, more
}

// giveUp has none asked for any more.
func (h *shelf) giveUp() {
	h.mu.Lock()
	h.useless = true
	h.mu.Unlock()
	h.clear(time.Now())
}

// spare is a connection to a of a socket of the stock; nil when there is none.
func (e *Errands) spare(ctx context.Context, way ipc.Stock, a client.Address) (net.Conn, error) {
	h := e.stock.shelf(way)
	fd, ok, more := h.take(time.Now())
	if more {
		_ = e.send(&way) // who gets none asks for each
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

// errIdle says that a socket's first write did not begin its connection.
var errIdle = errors.New("the socket did not start to connect")

// start has a socket of the stock connect: its first write begins the handshake, and one of no bytes is nothing else.
func start(ctx context.Context, fd int, a client.Address) (net.Conn, error) {
	_, err := unix.Write(fd, nil)
	if err == nil { // it was there in no time, or nothing happened
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
