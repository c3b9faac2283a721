package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/auth"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// server is a worker that serves. It passes the connections that arrive on the
// channel from the dispatcher to http.Server.
type server struct {
	channel *ipc.Channel
	http    *http.Server // for HTTP/1 connections
	queue   *queue
	http2   *http.Server // for HTTP/2 connections
	queue2  *queue
	own     *badRequests
	secure  secure
	tokens  *Tokens
	broker  *Broker
	tracker *connTracker

	gate     *gate
	offences *offences
	counts   *counters
	retired  atomic.Bool
	stall    time.Duration
	drain    time.Duration
	settle   time.Duration // part of drain for a request that is arriving
	inetd    bool
	only     atomic.Pointer[http1Conn] // the only connection of a server that was started by inetd
	held     sync.WaitGroup            // connections that were accepted and not closed
	refused  atomic.Int32              // refused connections that are not closed yet
	exit     chan int

	shaking  context.Context // context of handshakes, which precede any request; a drain cancels it
	endShake context.CancelFunc
}

func newServer(channel *ipc.Channel, setup *work.Setup, handler http.Handler, tokens *Tokens, broker *Broker) *server {
	l := setup.Limits
	s := &server{
		channel: channel,
		queue:   newQueue(),
		queue2:  newQueue(),
		own:     newBadRequests(setup),
		tokens:  tokens,
		broker:  broker,
		secure:  secure{remote: tokens.keeper},
		inetd:   setup.Inetd,
		stall:   l.Stall,
		drain:   l.Drain,
		settle:  settling,
		counts:  new(counters),
		exit:    make(chan int, 2),
	}
	s.shaking, s.endShake = context.WithCancel(context.Background())
	s.tracker = newConnTracker(func(m ipc.Message) error { return channel.Send(m) })
	s.offences = newOffences(setup.Admission, s.tracker, s.counts)
	s.offences.outOfDate, s.offences.userClaim = tokens.judge.OutOfDate, setup.UserClaim
	if broker != nil {
		broker.changes.counts = s.counts
	}
	s.own.offences = s.offences
	s.gate = newGate(s, setup, handler)
	all := metering(announced(s.gate))
	if m := metered.Load(); m != nil {
		m.more = func() []extra { return m.counted(s.counts) }
	}
	s.http, s.http2 = s.serving(&l, all), s.serving(&l, all)
	s.http2.HTTP2, s.http2.Protocols = http2(setup.Requests), new(http.Protocols)
	s.http2.Protocols.SetUnencryptedHTTP2(true) // http.Server does not see the wrapped TLS connection
	return s
}

// serving returns an http.Server of this worker.
func (s *server) serving(l *work.Limits, all http.Handler) *http.Server {
	return &http.Server{
		Handler:           all,
		ReadHeaderTimeout: l.ReadHeader,
		IdleTimeout:       l.Idle,
		MaxHeaderBytes:    int(l.Header),
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn),
		ConnContext:       s.context,
		ConnState:         s.turned,

		DisableGeneralOptionsHandler: true, // the handlers also answer "OPTIONS *"
	}
}

// withPeer adds the kernel's data about the client to the context of the
// connection's requests. Every connection of a worker is a conn, possibly
// wrapped. Any other type would be a bug, and must not be treated as a
// connection without data about the client.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	for {
		switch is := c.(type) {
		case *http1Conn:
			ctx, c = context.WithValue(ctx, http1Key{}, is), is.NetConn()
		case *conn:
			return auth.WithPeer(context.WithValue(context.WithValue(ctx, connectionKey{}, cmp.Or(is.id, is.only)), connKey{}, is), is.peer)
		case interface{ NetConn() net.Conn }:
			c = is.NetConn()
		default:
			panic(fmt.Sprintf("a connection of type %T", c))
		}
	}
}

// run serves until the dispatcher sends Drain or the channel closes, and
// returns the exit status.
func (s *server) run() int {
	go s.handleMessages()
	go s.serve(s.http, s.queue)
	go s.serve(s.http2, s.queue2)
	status := <-s.exit
	metered.Load().flush()
	return status
}

func (s *server) serve(by *http.Server, from *queue) {
	if err := by.Serve(from); !errors.Is(err, http.ErrServerClosed) {
		slog.Error("worker can't serve", "error", err)
		s.exit <- 1
	}
}

// handleMessages handles the dispatcher's messages in order, until the channel
// closes. So every connection that arrived before the message Drain is served.
func (s *server) handleMessages() {
	for {
		m, err := s.channel.Receive()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				slog.Error("worker lost its parent", "error", err)
			}
			s.exit <- 1
			return
		}
		switch msg := m.Message.(type) {
		case *ipc.Connection:
			if msg.Refuse != 0 {
				s.turnAway(m.FDs[0], msg)
			} else {
				s.take(m.FDs[0], msg)
			}
		case *ipc.Streams:
			s.takeStreams(m.FDs[0], m.FDs[1], msg)
		case *work.Dialed, *work.Undialed:
			s.broker.deliver(m)
		case *work.DialedBatch:
			s.broker.pool.upstream(msg.DialBatch).put(m.FDs, ipc.NoID, time.Now())
		case *work.ConnectedBatch:
			s.broker.pool.upstream(msg.DialBatch).put(m.FDs, msg.Server, time.Now())
		case *work.ServiceFD:
			err = s.connect(msg.Service, m.FDs[0])
		case *work.Keys:
			err = s.channel.Send(s.use(msg, m.FDs))
		case *work.Pause:
			s.tracker.pause(msg.ID, time.Duration(msg.Seconds)*time.Second)
		case *work.Yield:
			s.yield(msg.ID)
		case *work.Retire:
			s.retire()
		case *ipc.Ping:
			err = s.channel.Send(&ipc.Pong{Number: msg.Number})
		case *work.Drain:
			go s.finish()
		default:
			err = ipc.Unheard(msg)
		}
		if err != nil {
			slog.Error("worker lost its parent", "error", err)
			s.exit <- 1
			return
		}
	}
}

// connect uses the descriptor fd as the channel to a service.
func (s *server) connect(service ipc.Role, fd int) error {
	switch service {
	case ipc.Keeper:
		return s.tokens.connect(fd)
	case ipc.Resolver:
		return s.broker.resolver.connect(fd)
	case ipc.Auditor:
		return s.broker.changes.connect(fd)
	}
	_ = unix.Close(fd)
	return fmt.Errorf("channel to an unknown service: %s", service)
}

// use installs the certificates and public keys of this worker's generation,
// and returns the answer to the dispatcher.
func (s *server) use(m *work.Keys, fds []int) *ipc.Kept {
	var files []*os.File
	for _, fd := range fds {
		f := os.NewFile(uintptr(fd), "keys")
		defer f.Close()
		files = append(files, f)
	}
	s.secure.use(m, files[0], files[1])
	if err := s.tokens.use(files[2], m.Followed); err != nil {
		return &ipc.Kept{Token: true, Reason: ipc.Refuse(err.Error()).Reason}
	}
	return &ipc.Kept{OK: true}
}

// take queues a connection from the dispatcher for http.Server.
func (s *server) take(fd int, m *ipc.Connection) {
	s.held.Add(1)
	s.tracker.track(m.ID)
	c, err := newConn(fd, m, s.stall, s.ended(m.ID))
	if err != nil {
		slog.Warn("connection not usable", "error", err)
		s.ended(m.ID)()
		return
	}
	if !m.TLS {
		s.present(c)
		return
	}
	secured, err := s.secure.server(c)
	if err != nil {
		slog.Error("https connection closed", "error", err)
		_ = c.Close()
		return
	}
	s.tracker.made(m.ID, c, nil)
	go s.shake(c, secured, s.http.ReadHeaderTimeout)
}

// settling is the time for which a draining worker waits for a request that is
// arriving. Once Shutdown is called, http.Server drops a request that it has
// just read, and the client would have to retry.
const settling = 500 * time.Millisecond

// finish answers the requests in progress, closes idle connections, and ends
// the worker.
func (s *server) finish() {
	leaving.Store(true)
	s.endShake() // http.Server does not know connections in a handshake, and their clients may send nothing
	only := s.only.Load()
	if only != nil {
		only.closeUnused()
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.drain)
	defer cancel()
	other := make(chan error, 1)
	go func() { other <- s.http2.Shutdown(ctx) }()
	closed := make(chan struct{})
	go func() { s.held.Wait(); close(closed) }() // Shutdown does not know a connection that is just being accepted
	s.http.SetKeepAlivesEnabled(false)           // closes idle connections, and makes each answer the last of its connection
	select {
	case <-closed:
	case <-time.After(s.settle):
		if only != nil {
			only.giveWay()
		}
	}
	if err := errors.Join(s.http.Shutdown(ctx), <-other); err != nil {
		slog.Warn("unfinished requests abandoned", "limit", s.drain)
		_ = s.http.Close()
		_ = s.http2.Close()
	}
	select {
	case <-closed:
	case <-ctx.Done():
	}
	s.exit <- 0
}
