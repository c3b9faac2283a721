package http1server

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"schedrestd/internal/http1"
)

// A Conn is an HTTP/1 connection, plain or over TLS. Only the goroutine that
// runs Serve uses its fields, except for the constant and the atomic ones.
type Conn struct {
	server     *Server
	conn       net.Conn
	client     Client
	ctx        context.Context // of all its requests
	remoteAddr string

	state    state
	draining atomic.Bool                        // see Drain
	stopping atomic.Bool                        // see StopReading
	cancel   atomic.Pointer[context.CancelFunc] // cancels the request that is being answered; nil if there is none

	lexer   http1.Lexer
	in      []byte // bytes that have been read and not yet used
	bodyErr error  // why the rest of the current body can't be read
	reused  bool   // whether an earlier request was answered
}

// A state says what a connection does. The goroutine that runs Serve and those
// that end the connection agree by compare-and-swap: a request whose head is
// complete is answered, unless the connection was ended before.
type state struct{ atomic.Int32 }

const (
	fresh     int32 = iota // no byte of a request has arrived yet
	head                   // a part of a head has arrived
	answering              // the head is complete; the body may still arrive
	idle                   // at least one request was answered, and none has begun
	reclaimed              // another client needs the slot: a part of a head gets an answer
	stopped                // the worker stops: a part of a head gets an answer
	ended                  // nothing more is read
)

const (
	lingerTime = 500 * time.Millisecond // how long a refused client may take to read the answer
	unreadTime = time.Second            // how long the rest of a body is read that no handler has read
	maxUnread  = 256 << 10              // how much of it is read, in bytes
)
