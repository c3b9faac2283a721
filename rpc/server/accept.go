package server

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"syscall"
	"time"

	"schedrestd/become/peer"
	"schedrestd/internal/fdpass/unixconn"
	"schedrestd/internal/limit"
)

// Serve accepts connections from ln until Shutdown is called or ln fails. Then
// it closes ln. After Shutdown it returns ErrClosed. It may be called for
// several listeners.
func (s *Server) Serve(ln net.Listener) error {
	defer ln.Close()
	s.mu.Lock()
	s.startLocked()
	if s.closing {
		s.mu.Unlock()
		return errClosed
	}
	s.listeners[ln] = struct{}{}
	s.mu.Unlock()

	p := newPool(cmp.Or(s.Conns, limit.DaemonConns))
	if ln.Addr().Network() == "unix" {
		p.reserved = reservedConns
	}
	for {
		nc, err := s.accept(ln)
		if err != nil {
			return err
		}
		c := s.admit(nc, p)
		if c == nil {
			continue
		}
		go func() {
			defer s.release(c)
			c.serve()
		}()
	}
}

// accept returns the next connection. After a temporary error, such as a lack
// of descriptors, it tries again.
func (s *Server) accept(ln net.Listener) (net.Conn, error) {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		nc, err := ln.Accept()
		if unix, ok := nc.(*net.UnixConn); ok && err == nil {
			return unixconn.Wrap(unix)
		}
		if err == nil {
			return nc, nil
		}
		s.mu.Lock()
		closing := s.closing
		s.mu.Unlock()
		if closing {
			return nil, errClosed
		}
		if errors.Is(err, net.ErrClosed) || !temporary(err) {
			return nil, err
		}
		s.log().Warn("accept", "listener", ln.Addr().String(), "error", err)
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
			return nil, errClosed
		}
	}
}

// temporary reports whether accepting a connection may succeed later, although
// it has failed with err. This is the case if the peer has disconnected, if the
// machine lacks a resource, or if a signal interrupted the call.
func temporary(err error) bool {
	for _, e := range []error{syscall.ECONNABORTED, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EINTR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// admit returns a conn for nc, and counts it in the pool p. If nc can't be
// served, admit closes it and returns nil.
func (s *Server) admit(nc net.Conn, p *pool) *conn {
	c := &conn{server: s, nc: nc, pool: p}
	if unix, ok := nc.(*unixconn.Conn); ok {
		peer, err := peer.Of(unix)
		if err != nil {
			s.log().Warn("peer of a UNIX socket", "error", err)
			s.reject(c)
			return nil
		}
		c.peer, c.local = peer, true
		if !s.Super(peer.UID) && s.arrivals.Take(time.Now(), s.Owner(peer.UID), 1) > 0 {
			c.logLimited(slog.LevelWarn, "connection refused", "error", "too many connections per second")
			if s.closeExcess(c, unix) {
				return nil
			}
		}
	}
	if s.TLS != nil && !c.local {
		c.nc = s.TLS.Wrap(nc)
	}
	c.source = c.addrSource()
	if s.crowded(p) {
		c.source = c.origin()
	}
	if !s.waitForSlot(c) {
		s.reject(c)
		return nil
	}
	return c
}

// closeExcess closes c, the connection of a user who connects too often, and
// returns true. If the client may have sent descriptors, closing may take time
// (see package fdpass). If too many such connections are being closed,
// closeExcess does nothing and returns false, and the limits of the pool apply.
func (s *Server) closeExcess(c *conn, nc *unixconn.Conn) bool {
	if nc.RefusesFDs() {
		nc.Close()
		return true
	}
	s.mu.Lock()
	isCrowded := c.pool.closing >= maxClosing
	s.mu.Unlock()
	if isCrowded {
		return false
	}
	s.reject(c)
	return true
}

// reject closes c, which was not counted.
func (s *Server) reject(c *conn) {
	s.mu.Lock()
	c.pool.closing++
	s.mu.Unlock()
	go func() {
		c.nc.Close()
		s.mu.Lock()
		c.pool.closing--
		s.mu.Unlock()
		c.pool.signal()
	}()
}
