package worker

import (
	"net"
	"sync"
)

// queue is a net.Listener of the connections that the dispatcher passes to this
// worker.
type queue struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newQueue() *queue {
	return &queue{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// put waits until Accept returns c to its caller. After Close, it closes c
// instead.
func (q *queue) put(c net.Conn) {
	select {
	case q.conns <- c:
	case <-q.closed:
		_ = c.Close()
	}
}

// Accept returns the next connection.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. It closes no listening socket, because only the parent has
// them.
func (q *queue) Close() error {
	q.once.Do(func() { close(q.closed) })
	return nil
}

// Addr returns a placeholder, because there may be several addresses. Each
// connection has its own.
func (q *queue) Addr() net.Addr { return &net.UnixAddr{Name: "handed over", Net: "unix"} }
