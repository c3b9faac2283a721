// Package http2server serves HTTP/2 connections. It is net/http's server of
// HTTP/2, with limits that net/http lacks:
//
//   - Frames that make no progress are counted, and a client that sends too many
//     of them is refused (type budget).
//   - The caller learns of a client that breaks the protocol (type conn).
//   - No timer keeps the memory of a connection after its end (types conn and
//     stream), and the deadlines of a stream can be set at any time.
//
// A Server is made with New. Each connection is served with
//
//	server.Serve(ctx, conn, client)
package http2server

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"time"
)

// Options holds what all connections have in common.
type Options struct {
	Handler http.Handler
	Log     func(line string) // logs a line of net/http, which is nearly always about input that it refuses

	HeadTimeout time.Duration // limit for a header
	IdleTimeout time.Duration // limit for the time without a request
	MaxHead     int           // maximum length of a header, in bytes
	Requests    int           // how many requests the worker answers concurrently; 0: no limit
}

// Server serves HTTP/2 connections.
type Server struct {
	handler http.Handler
	idle    time.Duration
	http    *http.Server
	queue   *queue
}

// New returns a Server. The caller must call Run in a goroutine.
func New(o Options) *Server {
	s := &Server{handler: o.Handler, idle: o.IdleTimeout, queue: newQueue()}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true) // http.Server can't see that the connection uses TLS
	s.http = &http.Server{
		HTTP2:             http2Config(o.Requests),
		Protocols:         protocols,
		Handler:           http.HandlerFunc(s.serveStream),
		ReadHeaderTimeout: o.HeadTimeout,
		MaxHeaderBytes:    o.MaxHead,
		ErrorLog:          log.New(lineWriter(o.Log), "", 0),
		ConnContext:       func(_ context.Context, c net.Conn) context.Context { return c.(*conn).requestContext() },
		ConnState:         func(c net.Conn, state http.ConnState) { c.(*conn).stateChanged(state) },

		DisableGeneralOptionsHandler: true, // the handlers also answer "OPTIONS *"
	}
	return s
}

// serveStream serves one request.
func (s *Server) serveStream(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(connKey{}).(*conn)
	c.addRequests(1)
	defer c.addRequests(-1)
	st := &stream{ResponseWriter: w, conn: c, control: http.NewResponseController(w)}
	defer st.finish()
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &body{r.Body, c.budget}
	}
	s.handler.ServeHTTP(st, r)
}

// Run serves until Shutdown or Close is called.
func (s *Server) Run() error {
	if err := s.http.Serve(s.queue); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Serve serves c, on which the client has agreed to HTTP/2. The contexts of its
// requests are derived from ctx. After Shutdown, Serve closes c.
func (s *Server) Serve(ctx context.Context, c net.Conn, client Client) {
	s.queue.put(newConn(ctx, c, client, s.idle))
}

// Shutdown closes idle connections, and waits until the requests in progress
// are answered, or until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error { return s.http.Shutdown(ctx) }

// Close closes all connections.
func (s *Server) Close() error { return s.http.Close() }

// A lineWriter is called for each line.
type lineWriter func(string)

func (w lineWriter) Write(line []byte) (int, error) {
	if w != nil {
		w(string(line))
	}
	return len(line), nil
}

// http2Config returns the limits of an HTTP/2 connection. Each stream carries
// one request. A connection may have at most 100 concurrent requests, and at
// most a quarter of the number that this worker answers concurrently. The
// client must delay further requests.
func http2Config(requests int) *http.HTTP2Config {
	if requests == 0 {
		requests = 100
	}
	return &http.HTTP2Config{
		MaxConcurrentStreams:          max(1, min(requests/4, 100)),
		MaxReadFrameSize:              64 << 10,
		MaxReceiveBufferPerConnection: 1 << 20,
		MaxReceiveBufferPerStream:     256 << 10,
		SendPingTimeout:               30 * time.Second, // otherwise a client that has vanished would hold a slot
		PingTimeout:                   15 * time.Second,
		MaxEncoderHeaderTableSize:     1, // no dynamic table, so that isTooLarge can read the status of an answer
	}
}
