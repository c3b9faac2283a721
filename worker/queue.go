package worker

import (
	"net"
	"sync"
)

// queue is the net.Listener over the connections that the parent hands over.
type queue struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newQueue() *queue {
	return &queue{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// put waits until the connection is accepted; after Close it closes it.
func (q *queue) put(c net.Conn) {
	select {
	case q.conns <- c:
	case <-q.closed:
		_ = c.Close()
	}
}

// Accept gives the next connection.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. The sockets that listen are the parent's.
func (q *queue) Close() error {
	q.once.Do(func() { close(q.closed) })
	return nil
}

// Addr has no address to give: there may be several, and each connection has its own.
func (q *queue) Addr() net.Addr { return &net.UnixAddr{Name: "handed over", Net: "unix"} }
