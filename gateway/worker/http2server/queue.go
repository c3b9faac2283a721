package http2server

import (
	"net"
	"sync"
)

// A queue is a net.Listener whose Accept returns the connections that the
// dispatcher passes to this worker.
type queue struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newQueue() *queue {
	return &queue{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// put waits until a call of Accept has taken c. After Close, put closes c
// instead.
func (q *queue) put(c net.Conn) {
	select {
	case q.conns <- c:
	case <-q.closed:
		_ = c.Close()
	}
}

func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

// Close makes Accept fail. It closes no listening socket: only the parent has
// those.
func (q *queue) Close() error {
	q.once.Do(func() { close(q.closed) })
	return nil
}

// Addr returns a placeholder, because the connections may come from several
// listeners. Each connection has its own address.
func (q *queue) Addr() net.Addr { return &net.UnixAddr{Name: "handed over", Net: "unix"} }
