// Package http1server serves HTTP/1 connections. It has the place that
// http.Server has elsewhere, and differs from it in three ways:
//
//   - A lexer (package http1) decides where each request ends. A head is parsed
//     only after the lexer has accepted the whole of it, so no two parsers can
//     frame a request differently.
//   - One goroutine owns a connection from the first byte until it is closed:
//     it reads, calls the handler, writes the answer, and waits for the next
//     request. Other goroutines only ask for the connection's stage, and may
//     end the connection if no request is being answered (Conn.Reclaim).
//   - A client that has shut down its sending side still gets its answers. The
//     context of a request ends when the client can neither send nor receive.
//
// Input that is not a valid request gets an answer from the function Refuse.
// The package never upgrades a connection, has no trailers, and closes the
// connection after each HTTP/1.0 request.
//
// A Server is made by its fields. Each connection is served with
//
//	server.NewConn(ctx, conn, client).Serve()
package http1server

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Server holds what all connections of a worker have in common. Its fields must
// not change once a connection is served.
type Server struct {
	Handler http.Handler
	// Refuse answers input that is not a valid request. The request that it
	// gets has only a context.
	Refuse func(w http.ResponseWriter, r *http.Request, err error)

	HeadTimeout time.Duration // limit for a head, from its first byte, and for the first head, from the beginning of Serve
	IdleTimeout time.Duration // limit for the time between two requests
	MaxHead     int           // maximum length of a request line and its header, in bytes
	MaxBody     int64         // maximum length of a chunked body, in bytes
	Interactive bool          // a person may type the requests (see http1.Lexer)

	draining atomic.Bool
	stopping atomic.Bool
	watching atomic.Bool // whether the next call of watchHangups is scheduled

	mu    sync.Mutex // guards conns, and the field intervals of each request
	conns map[*Conn]struct{}
}

// Client learns what happens on a connection, and knows the client at its other
// end. Only the goroutine that runs Serve calls it, except for HungUp and
// HasUnread.
type Client interface {
	// Answered is called after each answer.
	Answered()
	// Refused is called before input is refused. If malformed is true, the
	// client has broken the protocol.
	Refused(malformed bool)
	// ReadFailed is called when a read fails. The error is not io.EOF.
	ReadFailed(err error)
	// HungUp reports whether the client can neither send nor receive.
	HungUp() bool
	// HasUnread reports whether bytes have arrived that were not read yet.
	HasUnread() bool
}

// Drain closes idle connections, and makes each answer the last on its
// connection.
func (s *Server) Drain() {
	s.draining.Store(true)
	for _, c := range s.open() {
		if !c.client.HasUnread() && (c.stage.CompareAndSwap(idle, ended) || s.Interactive && c.stage.CompareAndSwap(fresh, ended)) {
			_ = c.conn.Close()
		}
	}
}

// StopReading ends all connections on which no request is being answered. A
// client that has sent a part of a head gets an answer.
func (s *Server) StopReading() {
	s.stopping.Store(true)
	for _, c := range s.open() {
		c.end(stopped)
	}
}

// Close closes all connections.
func (s *Server) Close() {
	for _, c := range s.open() {
		_ = c.conn.Close()
	}
}

func (s *Server) open() (list []*Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		list = append(list, c)
	}
	return list
}

func (s *Server) add(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		s.conns = map[*Conn]struct{}{}
	}
	s.conns[c] = struct{}{}
}

func (s *Server) remove(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// hangupInterval is how often requests in progress are examined. Most requests
// are answered earlier, and cost no system call.
const hangupInterval = 50 * time.Millisecond

// isDue reports whether a request must be examined after the given number of
// intervals: at first each time, and later at least once in a second.
func isDue(intervals int) bool { return intervals&(intervals-1) == 0 || intervals%20 == 0 }

// scheduleWatch schedules watchHangups.
func (s *Server) scheduleWatch() {
	if !s.watching.Load() && !s.watching.Swap(true) {
		time.AfterFunc(hangupInterval, s.watchHangups)
	}
}

// watchHangups cancels each request whose client is gone. It schedules its next
// call if a request is being answered.
func (s *Server) watchHangups() {
	s.watching.Store(false) // a request that begins from now on schedules a call itself
	var due []*request
	busy := false
	s.mu.Lock()
	for c := range s.conns {
		r := c.current.Load()
		if r == nil {
			continue
		}
		busy = true
		if r.intervals++; r.intervals > 1 && isDue(r.intervals) {
			due = append(due, r)
		}
	}
	s.mu.Unlock()
	if busy {
		s.scheduleWatch()
	}
	for _, r := range due {
		if r.client.HungUp() {
			r.cancel()
		}
	}
}
