package worker

import (
	"context"
	"log/slog"
	"net"

	"schedrestd/gateway/worker/clientconn"
	"schedrestd/gateway/worker/http1server"
	"schedrestd/gateway/worker/keys"
	"schedrestd/ipc/work"
)

// An http1Client tells the worker what happens on an HTTP/1 connection. It
// implements http1server.Client.
type http1Client struct {
	server *server
	conn   *clientconn.Conn
	state  *connState // nil if the connection is not tracked
}

// newHTTP1Conn returns c as an HTTP/1 connection. The argument outer is c
// itself, or a TLS connection over c.
func (s *server) newHTTP1Conn(outer net.Conn, c *clientconn.Conn) *http1server.Conn {
	client := &http1Client{server: s, conn: c, state: s.tracker.lookup(c.ID)}
	h := s.http1.NewConn(s.connContext(context.Background(), outer), outer, client)
	s.tracker.setConn(c.ID, outer, h)
	return h
}

// closeFunc returns the function that must be called when connection id is
// closed. That function frees the slot. In inetd mode, it also stops the
// server.
func (s *server) closeFunc(id uint64) func() {
	return func() {
		s.tracker.recordClose(id)
		s.openConns.Done()
		if s.inetd {
			s.exit <- 0
		}
	}
}

// servePlain serves a connection without TLS.
func (s *server) servePlain(c *clientconn.Conn) { go s.newHTTP1Conn(c, c).Serve() }

func (c *http1Client) Answered() {
	c.conn.Restore()
	if c.state != nil {
		c.server.tracker.updateStage(c.state, work.Idle)
	}
}

func (c *http1Client) Refused(malformed bool) {
	c.server.counts.BadRequests.Add(1)
	if malformed {
		c.server.offences.reportMalformed(c.conn.ID)
	}
}

func (c *http1Client) ReadFailed(err error) {
	if keys.IsGarbled(err) {
		c.server.offences.reportMalformed(c.conn.ID)
	}
}

func (c *http1Client) HungUp() bool { return c.conn.IsHungUp() }

func (c *http1Client) HasUnread() bool { return c.conn.HasUnread() }

// An http2Client tells the worker what happens on an HTTP/2 connection. It
// implements http2server.Client.
type http2Client struct {
	server *server
	conn   *clientconn.Conn
	state  *connState // nil if the connection is not tracked
}

// serveHTTP2 serves outer, a TLS connection over c, with HTTP/2.
func (s *server) serveHTTP2(outer net.Conn, c *clientconn.Conn) {
	client := &http2Client{server: s, conn: c, state: s.tracker.lookup(c.ID)}
	s.tracker.setConn(c.ID, outer, nil)
	s.http2.Serve(s.connContext(context.Background(), outer), outer, client)
}

func (c *http2Client) Idle() {
	c.conn.Restore()
	if c.state != nil {
		c.server.tracker.updateStage(c.state, work.Idle)
	}
}

func (c *http2Client) Offended() {
	c.server.counts.Frames.Add(1)
	c.server.offences.reportMalformed(c.conn.ID)
}

func (c *http2Client) Refused(err error) {
	if c.server.offences.mayLog() {
		slog.Info("HTTP/2 connection closed", "peer", c.conn.Peer.String(), "cause", err)
	}
}

func (c *http2Client) ReadFailed(err error) {
	if keys.IsGarbled(err) {
		c.Offended()
	}
}

func (c *http2Client) IsBlocked() bool {
	return c.state != nil && c.server.tracker.blockedFor(c.state) > 0
}
