package server

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"syscall"
	"time"

	"schedrestd/become"
	"schedrestd/rights"
)

// Serve accepts connections from ln, which it closes at its end, until Shutdown (the
// result is then ErrClosed) or until ln fails. It may be called for several listeners.
//
// Each listener has its own slots: strangers that fill the TCP port leave the UNIX socket
// usable. Without a free slot nothing is accepted, and clients wait in the kernel's
// queue; a connection closed at once would leave them in doubt. On a UNIX socket, where the
// kernel says who wants in, one uid can't have them all, and some are kept for a Super.
func (s *Server) Serve(ln net.Listener) error {
	defer ln.Close()
	s.mu.Lock()
	s.start()
	if s.closing {
		s.mu.Unlock()
		return ErrClosed
	}
	s.listeners[ln] = struct{}{}
	s.mu.Unlock()

	most := cmp.Or(s.MaxConns, defaultMaxConns)
	users := &userCount{most: most, each: cmp.Or(s.MaxPerUser, defaultMaxPerUser), super: s.Super, held: map[uint32]int{}}
	if ln.Addr().Network() == "unix" {
		most += reserve // who wants in is known there
	}
	slots := make(chan struct{}, most)
	for {
		select {
		case slots <- struct{}{}:
		case <-s.ctx.Done():
			return ErrClosed
		}
		nc, err := s.accept(ln)
		if err != nil {
			return err
		}
		c := s.admit(nc, users)
		if c == nil {
			go func() { nc.Close(); <-slots }()
			continue
		}
		go func() {
			defer func() { s.release(c, users); <-slots }()
			c.serve()
		}()
	}
}

// accept waits out what passes by itself: no descriptors left, a peer already gone.
func (s *Server) accept(ln net.Listener) (net.Conn, error) {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		nc, err := ln.Accept()
		if unix, ok := nc.(*net.UnixConn); ok && err == nil {
			return rights.Guard(unix)
		}
		if err == nil {
			return nc, nil
		}
		s.mu.Lock()
		closing := s.closing
		s.mu.Unlock()
		if closing {
			return nil, ErrClosed
		}
		if errors.Is(err, net.ErrClosed) || !temporary(err) {
			return nil, err
		}
		s.log().Warn("accept", "listener", ln.Addr().String(), "error", err)
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
			return nil, ErrClosed
		}
	}
}

// temporary tells whether accept may succeed later: the peer has gone already, or
// something has run out.
func temporary(err error) bool {
	for _, e := range []error{syscall.ECONNABORTED, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EINTR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// admit makes a conn of nc and counts it in; nil when it is not to be served.
func (s *Server) admit(nc net.Conn, users *userCount) *conn {
	c := &conn{server: s, nc: nc}
	if unix, ok := nc.(*rights.Conn); ok {
		peer, err := become.Peer(unix)
		if err != nil {
			s.log().Warn("peer of a UNIX socket", "error", err)
			return nil
		}
		c.peer, c.local = peer, true
		if !users.take(peer.UID) {
			s.say(slog.LevelWarn, "too many connections of one user, or of all", "uid", peer.UID)
			return nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		users.give(c)
		return nil
	}
	s.conns[c] = struct{}{}
	s.wait.Add(1)
	return c
}

func (s *Server) release(c *conn, users *userCount) {
	c.nc.Close()
	s.mu.Lock()
	delete(s.conns, c)
	users.give(c)
	s.mu.Unlock()
	s.wait.Done()
}
