package exporter

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"schedrestd/internal/limit"
	"schedrestd/internal/penalty"
	"schedrestd/internal/semaphore"
)

// A listener accepts connections even when their number has reached the limit,
// and closes others for them. Otherwise clients that keep their connections open,
// with a request now and then or none at all, would keep all others waiting.
//
// A connection can be closed unless the answer to a request on it is being made.
// These are those of the source with the most connections, the one first that has
// been without a request longest. A source with half of all connections makes
// room among its own.
type listener struct {
	net.Listener

	mu    sync.Mutex
	conns *semaphore.Queue[netip.Addr, *conn] // by source; the items are the connections that can be closed
}

func newListener(l net.Listener) *listener {
	return &listener{Listener: l, conns: semaphore.NewQueue[netip.Addr, *conn](limit.MetricsConns, nil)}
}

// conn is a connection of a listener. The listener's lock guards its fields.
type conn struct {
	net.Conn
	listener *listener
	source   netip.Addr
	counted  bool // it counts towards the limits
}

// sourceOf returns the source of a client. Clients of a UNIX socket are one
// source, the zero value.
func sourceOf(addr net.Addr) netip.Addr {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		return penalty.ClientAddr(tcp.AddrPort().Addr())
	}
	return netip.Addr{}
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: nc, listener: l, source: sourceOf(nc.RemoteAddr())}
		if l.admit(c) {
			return c, nil
		}
		nc.Close()
	}
}

// admit counts c, and closes other connections for it if necessary. It returns
// false if there is none that can be closed.
func (l *listener) admit(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.conns.Free() <= 0 || l.conns.AtShare(c.source) {
		victim, ok := l.conns.First(c.source)
		if !l.conns.AtShare(c.source) {
			victim, ok = l.conns.Most()
		}
		if !ok {
			return false
		}
		l.forgetLocked(victim)
		victim.Conn.Close()
	}
	c.counted = true
	l.conns.Hold(c.source, 1)
	l.conns.Push(c.source, c)
	return true
}

// forgetLocked stops counting c.
func (l *listener) forgetLocked(c *conn) {
	if c.counted {
		c.counted = false
		l.conns.Remove(c.source, c)
		l.conns.Hold(c.source, -1)
	}
}

// Close closes the connection.
func (c *conn) Close() error {
	c.listener.mu.Lock()
	c.listener.forgetLocked(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// begin keeps c open while a request on it is being answered.
func (c *conn) begin() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.listener.conns.Remove(c.source, c)
}

// end ends what begin has begun. It is called before the answer is sent, because
// the client may read it slowly or not at all.
func (c *conn) end() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if c.counted {
		c.listener.conns.Push(c.source, c)
	}
}

type connKey struct{}

// withConn returns a copy of ctx that contains the connection of a request.
func withConn(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, nc)
}
