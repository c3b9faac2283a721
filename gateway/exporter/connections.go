package exporter

import (
	"context"
	"net"
	"net/netip"

	"schedrestd/internal/limit"
	"schedrestd/internal/penalty"
	"schedrestd/internal/semaphore"
)

// A listener accepts connections even when their number has reached the limit, and
// closes another one for each. Of a source's connections, it first closes the one
// that has had no request for the longest time. Otherwise clients that keep their
// connections open, with few requests or none, would keep all others waiting. A
// connection stays open while the answer to a request on it is being made
// (Place.Keep).
type listener struct {
	net.Listener
	conns *semaphore.Semaphore[netip.Addr] // keys are sources
}

func newListener(l net.Listener) *listener {
	return &listener{l, semaphore.New[netip.Addr](limit.MetricsConns)}
}

// conn is a connection of a listener.
type conn struct {
	net.Conn
	source netip.Addr
	place  *semaphore.Place[netip.Addr]
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
		if c := l.admit(nc); c != nil {
			return c, nil
		}
		nc.Close()
	}
}

// admit counts a connection, and closes another one for it if necessary. It returns
// nil if there is none that can be closed.
func (l *listener) admit(nc net.Conn) *conn {
	source := sourceOf(nc.RemoteAddr())
	place := l.conns.Displace(source, func() { nc.Close() })
	if place == nil {
		return nil
	}
	return &conn{nc, source, place}
}

// Close closes the connection.
func (c *conn) Close() error {
	c.place.Release()
	return c.Conn.Close()
}

type connKey struct{}

// withConn returns a copy of ctx that contains the connection of a request.
func withConn(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, nc)
}
