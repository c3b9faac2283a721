// Package http1server serves HTTP/1 connections. It has the place that
// http.Server has elsewhere, and differs from it in three ways:
//
//   - A lexer (package http1) decides where each request ends. A head is parsed
//     only after the lexer has accepted the whole of it, so no two parsers can
//     frame a request differently.
//   - One goroutine owns a connection from the first byte until it is closed:
//     it reads, calls the handler, writes the answer, and waits for the next
//     request. Other goroutines may only end the connection if no request is
//     being answered (Conn.Reclaim).
//   - A client that has shut down its sending side still gets its answers. The
//     package does not notice that a client is gone unless a read or a write
//     fails: the caller has to look, and to call Conn.Cancel.
//
// Input that is not a valid request gets an answer from the function Refuse.
// The package never upgrades a connection, has no trailers, and closes the
// connection after each HTTP/1.0 request.
//
// A Server is made by its fields. It keeps no list of its connections, because
// the caller has one. Each connection is served with
//
//	server.NewConn(ctx, conn, client).Serve()
package http1server

import (
	"net/http"
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
}

// Client learns what happens on a connection, and knows the client at its other
// end. Only the goroutine that runs Serve calls it, except for HasUnread.
type Client interface {
	// Begun is called when the first byte of the first request has arrived.
	Begun()
	// Answered is called after each answer that another request may follow.
	Answered()
	// Refused is called before input is refused. If malformed is true, the
	// client has broken the protocol.
	Refused(malformed bool)
	// ReadFailed is called when a read fails. The error is not io.EOF.
	ReadFailed(err error)
	// HasUnread reports whether bytes have arrived that were not read yet.
	HasUnread() bool
}
