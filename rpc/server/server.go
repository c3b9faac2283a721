// Package server is the server side of Slurm's RPC, for the bundled daemons. It
// receives messages on TCP and UNIX sockets, verifies their senders, and passes
// each message to the handler for its type.
//
// Before the server has verified a client's credential, it reads at most
// maxFront bytes of the client's message, and does not decode the body. So a
// connection without a verified credential uses only one connection slot, a few
// kilobytes and a few seconds.
//
// Two types of credentials are supported. A token (JWT) is accepted on any
// socket; the function Verify verifies it. A credential of auth/cred is empty,
// and the kernel reports the peer's user instead. Such a credential is accepted
// only on UNIX sockets, because over TCP it proves nothing.
//
// Two protocols are supported. In slurmctld's protocol (Handlers), each
// connection carries one request and one answer. In slurmdbd's protocol
// (Persistent), a connection carries any number of requests. The context of a
// handler ends when the connection ends. Request.Spool encodes a list of any
// length in little memory.
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

	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/internal/semaphore"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
	"schedrestd/rpc/tlsconn"
)

// Handler answers a request. An error is converted to one of Slurm's error
// numbers (package fault). But an error with Code errs.OutcomeUnknown is not
// sent: the connection is closed without an answer, because clients take every
// answer for certain. ctx ends when the client closes the connection, or
// when a shutdown exceeds its time limit.
type Handler func(ctx context.Context, r *Request) (message.Type, message.Body, error)

// Server serves the listeners that are passed to Serve. Its fields must not
// change after the first call of Serve. A limit of 0 means the default.
type Server struct {
	Handlers   map[message.Type]Handler // for connections with one request
	Persistent map[message.Type]Handler // for persistent connections; nil if these are not supported
	Greeting   string                   // comment in the answer that opens a persistent connection

	// Verify verifies a token and returns the identity for a request. The
	// argument actAs is the name of the user to act as, or "" for the token's
	// own user. Both bundled daemons use Authority.Verify. If Verify is nil,
	// tokens are refused.
	Verify func(token, actAs string) (Identity, error)
	// Super reports whether a user is a Super. A Super is exempt from the share of
	// Conns and from the limits on bytes in memory and on disk. If the
	// function is nil, root and the user of this process are Supers, because
	// they could stop the process anyway.
	Super func(uid uint32) bool
	// Limit returns the maximum length of a request of type t from id. If Limit
	// is nil, the maximum is MaxSmall.
	Limit func(t message.Type, id Identity) int
	// Owner returns the user for whom a user of this machine counts in the
	// limits on connections: the owner of a subordinate uid, and otherwise the
	// uid itself. If Owner is nil, each uid counts separately.
	Owner func(uid uint32) uint32
	// TLS is for TCP connections. If it is nil, they are plain. Connections to
	// UNIX sockets always are.
	TLS *tlsconn.Server
	Log *slog.Logger // nil for slog.Default

	Oldest, Newest codec.Version // accepted protocol versions; 0 for all known ones

	Conns        semaphore.Row // connections to each listener; zero: limit.DaemonConns
	Bytes        semaphore.Row // bytes of requests in memory; zero: limit.DaemonRequestBytes
	SpoolBytes   semaphore.Row // bytes of spooled answers on disk; zero: limit.DaemonSpoolBytes
	MaxRequest   int           // bytes of one message, even if Limit permits more
	SpoolDir     string        // directory of the unnamed files with spooled answers; "" for os.TempDir
	FrontTimeout time.Duration // until the credential has arrived
	BodyTimeout  time.Duration // from the credential's verification until the whole message has arrived
	WriteTimeout time.Duration // to send an answer
	IdleTimeout  time.Duration // between requests of a persistent connection

	requestBudget budget
	spoolBudget   budget
	arrivals      *rate.Buckets[uint32] // connections to UNIX sockets, by user
	lines         *limit.Lines          // about clients
	mu            sync.Mutex            // guards closing, listeners, conns, and the state of each pool and conn
	closing       bool
	listeners     map[net.Listener]struct{}
	conns         map[*conn]struct{}
	wg            sync.WaitGroup
	ctx           context.Context
	stop          context.CancelFunc
}

// Default limits of Server.
const (
	defaultMaxRequest   = 64 << 20
	defaultFrontTimeout = 5 * time.Second
	defaultBodyTimeout  = 30 * time.Second
	defaultWriteTimeout = 60 * time.Second
	defaultIdleTimeout  = 10 * time.Minute
)

// reservedConns is how many connections to a UNIX socket are reserved for a
// Super.
const reservedConns = 32

// MaxSmall is the maximum length in bytes of most requests.
const MaxSmall = 64 << 10

// maxFront is the maximum number of bytes of a message that are read before the
// message's credential is verified. A header and a token together never exceed
// it.
const maxFront = 32 << 10

// lingerTimeout is how long a client may continue to send a request that was
// refused.
const lingerTimeout = 2 * time.Second

// errClosed is returned by Serve after Shutdown.
var errClosed = errors.New("server closed")

func (s *Server) log() *slog.Logger {
	if s.Log == nil {
		return slog.Default()
	}
	return s.Log
}

func (s *Server) oldest() codec.Version { return cmp.Or(s.Oldest, codec.Oldest) }
func (s *Server) newest() codec.Version { return cmp.Or(s.Newest, codec.Newest) }

// startLocked prepares s for its first listener.
func (s *Server) startLocked() {
	if s.ctx == nil {
		s.ctx, s.stop = context.WithCancel(context.Background())
		s.listeners = map[net.Listener]struct{}{}
		s.conns = map[*conn]struct{}{}
		if s.arrivals == nil {
			s.arrivals = rate.NewBuckets[uint32](limit.DaemonArrivals)
		}
		s.lines = limit.NewLines(limit.ClientLines, s.log())
		if s.Owner == nil {
			s.Owner = func(uid uint32) uint32 { return uid }
		}
		if s.Super == nil {
			s.Super = func(uid uint32) bool { return uid == 0 || uid == uint32(os.Geteuid()) }
		}
		s.requestBudget = newBudget(cmp.Or(s.Bytes, limit.DaemonRequestBytes), s.Super, "large requests")
		s.spoolBudget = newBudget(cmp.Or(s.SpoolBytes, limit.DaemonSpoolBytes), s.Super, "unread long answers")
	}
}

// Shutdown stops accepting connections, answers the requests that have already
// been read, and closes all connections. It returns when all of them are
// closed. If ctx ends before that, it closes the remaining connections and
// returns ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.startLocked()
	s.closing = true
	for ln := range s.listeners {
		ln.Close()
	}
	for c := range s.conns {
		c.interruptLocked()
	}
	s.mu.Unlock()
	s.lines.Flush()

	done := make(chan struct{})
	go func() { s.wg.Wait(); close(done) }()
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
