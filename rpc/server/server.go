// Package server is the other end of the RPC, for the shipped daemons: it takes
// messages off TCP and UNIX sockets, finds out who sends them, and hands them to
// the handler of their type.
//
// A peer is a stranger until its credential has been judged. Until then it costs
// one slot, a few kilobytes and a few seconds; no byte of a body is kept or decoded
// for it. Two credentials are understood: a token (JWT), judged by Verify, on any
// socket; and auth/cred, which is empty and means the peer that the kernel names,
// on UNIX sockets alone. On TCP it proves nothing and is refused.
//
// Two exchanges are spoken: that of slurmctld (one request, one answer, close;
// Handlers) and that of slurmdbd (a connection that stays; Persistent). A
// handler's context ends with its connection, and Request.Spool encodes a list of
// any length in little memory.
package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// Handler answers one request. Errors become Slurm's error numbers (package
// fault); ctx ends when a shutdown runs out of time, and when the client closes
// the connection.
type Handler func(ctx context.Context, r *Request) (message.Type, message.Body, error)

// Server serves the listeners given to Serve. Its fields are set before that and
// not changed afterwards; zero limits mean the defaults.
type Server struct {
	Handlers   map[message.Type]Handler // one request to a connection
	Persistent map[message.Type]Handler // on connections that stay; nil: none are taken

	// Verify judges a token and the name it wants to act as ("" = its own). See
	// Authority, which both daemons use. nil: tokens are refused.
	Verify func(token, actAs string) (Identity, error)
	// Super tells whom neither the connections nor the bytes of others keep out; nil: root and
	// the user of this process, who could stop it anyway.
	Super func(uid uint32) bool
	// Limit is how many bytes of a request of type t are taken from id; nil: MaxSmall.
	Limit func(t message.Type, id Identity) int
	Log   *slog.Logger // nil: slog.Default

	Oldest, Newest codec.Version // protocol versions accepted; 0: all that are known

	MaxConns     int           // connections to one listener
	MaxPerUser   int           // of them, with a credential of one user; a Super's don't count
	MaxRequest   int           // bytes of one message, whatever Limit says
	MaxBytes     int           // of all requests that are here at a time; a Super's don't count
	MaxUserBytes int           // of them by one uid
	MaxSpool     int           // bytes of spooled answers that wait on disk for their clients; a Super's don't count
	MaxUserSpool int           // of them for one uid
	SpoolDir     string        // where they wait, in files without a name; "": os.TempDir
	FrontTimeout time.Duration // until the credential is here
	BodyTimeout  time.Duration // from there to the whole message
	WriteTimeout time.Duration // for an answer
	IdleTimeout  time.Duration // between requests of a connection that stays

	bytes     budget
	spooled   budget
	talk      throttle
	mu        sync.Mutex
	closing   bool
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	wait      sync.WaitGroup
	ctx       context.Context
	stop      context.CancelFunc
}

// Defaults of Server's limits.
const (
	defaultMaxConns     = 512
	defaultMaxPerUser   = 128 // one user at the gateway may have all of its requests there
	defaultMaxRequest   = 64 << 20
	defaultMaxBytes     = 128 << 20
	defaultMaxUserBytes = 32 << 20
	defaultMaxSpool     = 2 << 30
	defaultMaxUserSpool = 512 << 20
	defaultFrontTimeout = 5 * time.Second
	defaultBodyTimeout  = 30 * time.Second
	defaultWriteTimeout = 60 * time.Second
	defaultIdleTimeout  = 10 * time.Minute
)

// reserve is how many connections to a UNIX socket are kept for a Super.
const reserve = 32

// MaxSmall is the bytes of a request that is a question: all but a few are.
const MaxSmall = 64 << 10

// maxFront is how much of a message is read before its credential is judged: no
// header and token together is longer.
const maxFront = 32 << 10

// lingerTimeout is how long a stranger may go on sending after his answer.
const lingerTimeout = 2 * time.Second

// ErrClosed is Serve's result after Shutdown.
var ErrClosed = errors.New("server closed")

func (s *Server) log() *slog.Logger {
	if s.Log == nil {
		return slog.Default()
	}
	return s.Log
}

func (s *Server) oldest() codec.Version { return cmp.Or(s.Oldest, codec.Oldest) }
func (s *Server) newest() codec.Version { return cmp.Or(s.Newest, codec.Newest) }

// start prepares s for its first listener; the caller holds mu.
func (s *Server) start() {
	if s.ctx == nil {
		s.ctx, s.stop = context.WithCancel(context.Background())
		s.listeners = map[net.Listener]struct{}{}
		s.conns = map[*conn]struct{}{}
		if s.Super == nil {
			s.Super = func(uid uint32) bool { return uid == 0 || uid == uint32(os.Geteuid()) }
		}
		s.bytes = budget{most: cmp.Or(s.MaxBytes, defaultMaxBytes), each: cmp.Or(s.MaxUserBytes, defaultMaxUserBytes),
			super: s.Super, held: map[uint32]int{}, what: "large requests"}
		s.spooled = budget{most: cmp.Or(s.MaxSpool, defaultMaxSpool), each: cmp.Or(s.MaxUserSpool, defaultMaxUserSpool),
			super: s.Super, held: map[uint32]int{}, what: "unread long answers"}
	}
}

// Shutdown stops accepting, lets requests that have been read be answered, closes
// everything else, and returns when all is closed, or with ctx's error after
// closing the rest by force when ctx ends first.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.start()
	s.closing = true
	for ln := range s.listeners {
		ln.Close()
	}
	for c := range s.conns {
		c.interrupt()
	}
	s.mu.Unlock()
	s.talk.flush()

	done := make(chan struct{})
	go func() { s.wait.Wait(); close(done) }()
	select {
	case <-done:
		s.stop()
		return nil
	case <-ctx.Done():
	}
	s.stop()
	s.mu.Lock()
	for c := range s.conns {
		c.nc.Close()
	}
	s.mu.Unlock()
	return ctx.Err()
}
