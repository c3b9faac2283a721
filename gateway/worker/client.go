package worker

import (
	"context"
	"log/slog"
	"net"

	"schedrestd/auth"
	"schedrestd/gateway/worker/broker"
	"schedrestd/gateway/worker/clientconn"
	"schedrestd/gateway/worker/conns"
	"schedrestd/gateway/worker/http1server"
	"schedrestd/gateway/worker/keys"
)

// An http1Client tells the worker what happens on an HTTP/1 connection. It
// implements http1server.Client.
type http1Client struct {
	*conns.Conn
	server *server
	raw    *clientconn.Conn
}

// newHTTP1Conn returns outer as an HTTP/1 connection. The argument outer is raw
// itself, or a TLS connection over raw.
func (s *server) newHTTP1Conn(outer net.Conn, raw *clientconn.Conn, c *conns.Conn) *http1server.Conn {
	h := s.http1.NewConn(withFacts(raw, c), outer, http1Client{c, s, raw})
	c.Attach(raw, outer, h)
	return h
}

func (c http1Client) Answered() { c.Idle() }

func (c http1Client) Refused(malformed bool) {
	c.server.counts.BadRequests.Add(1)
	if malformed {
		c.ReportMalformed()
	}
}

func (c http1Client) ReadFailed(err error) {
	if keys.IsGarbled(err) {
		c.ReportMalformed()
	}
}

func (c http1Client) HasUnread() bool { return c.raw.HasUnread() }

// An http2Client tells the worker what happens on an HTTP/2 connection. It
// implements http2server.Client.
type http2Client struct {
	*conns.Conn
	server *server
	raw    *clientconn.Conn
}

// serveHTTP2 serves outer, a TLS connection over raw, with HTTP/2.
func (s *server) serveHTTP2(outer net.Conn, raw *clientconn.Conn, c *conns.Conn) {
	c.Attach(raw, outer, nil)
	s.http2.Serve(withFacts(raw, c), outer, http2Client{c, s, raw})
}

func (c http2Client) Offended() {
	c.server.counts.Frames.Add(1)
	c.ReportMalformed()
}

func (c http2Client) Refused(err error) {
	if c.server.table.MayLog() {
		slog.Info("HTTP/2 connection closed", "peer", c.raw.Peer.String(), "cause", err)
	}
}

func (c http2Client) ReadFailed(err error) {
	if keys.IsGarbled(err) {
		c.Offended()
	}
}

// withFacts returns a context for the requests of a connection, with all facts
// about it.
func withFacts(raw *clientconn.Conn, c *conns.Conn) context.Context {
	ctx := auth.WithPeer(c.With(context.Background()), raw.Peer)
	return broker.WithConnection(ctx, raw.ID)
}
