package worker

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"schedrestd/gateway/worker/broker"
	"schedrestd/gateway/worker/clientconn"
	"schedrestd/gateway/worker/count"
	"schedrestd/gateway/worker/http1server"
	"schedrestd/gateway/worker/http2server"
	"schedrestd/gateway/worker/keys"
	"schedrestd/gateway/worker/meter"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// A server is a worker that is ready to serve. It serves the connections that it
// gets from the dispatcher: HTTP/1 with http1server, and HTTP/2 with
// http2server.
type server struct {
	channel     *ipc.Channel
	handler     http.Handler
	http1       *http1server.Server
	http2       *http2server.Server
	answerError answerError
	keys        *keys.Keys
	broker      *broker.Broker
	tracker     *connTracker

	limiter      *requestLimiter
	offences     *offences
	counts       *count.Counters
	auditCounts  *broker.AuditCounts
	retired      atomic.Bool
	stall        time.Duration
	drain        time.Duration
	stopWaiting  func(reason string) // makes the requests that wait for changes answer
	arrivalGrace time.Duration       // how long a drain waits for a request that is arriving
	inetd        bool
	openConns    sync.WaitGroup // connections that were accepted and not closed
	refused      atomic.Int32   // number of refused connections that are not closed yet
	exit         chan int

	handshakeCtx     context.Context // context of TLS handshakes; a drain cancels it
	cancelHandshakes context.CancelFunc
}

func newServer(channel *ipc.Channel, setup *work.Setup, handler http.Handler, k *keys.Keys, b *broker.Broker) *server {
	l := setup.Limits
	s := &server{
		channel:      channel,
		answerError:  newAnswerError(setup),
		keys:         k,
		broker:       b,
		inetd:        setup.Inetd,
		stall:        l.Stall,
		drain:        l.Drain,
		arrivalGrace: arrivalGrace,
		stopWaiting:  func(string) {},
		counts:       new(count.Counters),
		auditCounts:  new(broker.AuditCounts),
		exit:         make(chan int, 2),
	}
	s.handshakeCtx, s.cancelHandshakes = context.WithCancel(context.Background())
	s.tracker = newConnTracker(func(m ipc.Message) error { return channel.Send(m) })
	s.offences = newOffences(setup.Admission, s.tracker, s.counts)
	s.offences.outOfDate, s.offences.userClaim = k.Authenticator().IsOutOfDate, setup.UserClaim
	if b != nil {
		s.auditCounts = b.AuditCounts()
	}
	s.limiter = newRequestLimiter(s, setup, handler)
	s.handler = meter.CountRequests(s.limiter)
	if m := meter.Process(); m != nil {
		m.Include(s.counts, s.auditCounts)
	}
	s.http1 = &http1server.Server{
		Handler:     s.handler,
		Refuse:      s.answerError,
		HeadTimeout: l.ReadHeader,
		IdleTimeout: l.Idle,
		MaxHead:     int(l.Header),
		MaxBody:     int64(l.Body),
		Interactive: setup.Inetd,
	}
	s.http2 = http2server.New(http2server.Options{
		Handler:     s.handler,
		Log:         s.offences.logLine,
		HeadTimeout: l.ReadHeader,
		IdleTimeout: l.Idle,
		MaxHead:     int(l.Header),
		Requests:    int(setup.Requests),
	})
	return s
}

// withPeer adds the facts about the client to the context of a connection's
// requests.
func withPeer(ctx context.Context, outer net.Conn) context.Context {
	ctx = clientconn.WithPeer(ctx, outer)
	return broker.WithConnection(ctx, clientconn.Of(outer).ID)
}

// run serves until the dispatcher sends Drain, the channel closes, or the
// connection of inetd mode ends. It returns the exit status.
func (s *server) run() int {
	go s.handleMessages()
	go s.runHTTP2()
	status := <-s.exit
	meter.Process().Flush()
	return status
}

func (s *server) runHTTP2() {
	if err := s.http2.Run(); err != nil {
		slog.Error("worker can't serve", "error", err)
		s.exit <- 1
	}
}

// handleMessages handles the dispatcher's messages in order, until the channel
// closes. So a connection that arrived before the message Drain is still
// served.
func (s *server) handleMessages() {
	for {
		m, err := s.channel.Receive()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				slog.Error("channel to the dispatcher failed", "error", err)
			}
			s.exit <- 1
			return
		}
		switch msg := m.Message.(type) {
		case *ipc.Connection:
			if msg.RefuseStatus != 0 {
				s.refuseConn(m.FDs[0], msg)
			} else {
				s.queueConn(m.FDs[0], msg)
			}
		case *ipc.StdioConnection:
			s.serveStdio(m.FDs[0], m.FDs[1], msg)
		case *work.Dialed, *work.DialFailed, *work.DialedBatch, *work.ConnectedBatch:
			s.broker.Deliver(m)
		case *work.ServiceChannel:
			err = s.connectService(msg.Service, m.FDs[0])
		case *work.Keys:
			err = s.channel.Send(s.keys.Load(msg, m.FDs))
		case *work.Pause:
			s.tracker.pause(msg.ID, time.Duration(msg.Seconds)*time.Second)
		case *work.ReclaimConnection:
			s.reclaim(msg.ID)
		case *work.Retire:
			s.retire()
		case *ipc.Ping:
			err = s.channel.Send(&ipc.Pong{Number: msg.Number})
		case *work.Drain:
			go s.shutdown()
		default:
			err = ipc.Unhandled(msg)
		}
		if err != nil {
			slog.Error("channel to the dispatcher failed", "error", err)
			s.exit <- 1
			return
		}
	}
}

// connectService makes the descriptor fd this worker's channel to a service.
func (s *server) connectService(service ipc.Role, fd int) error {
	if service == ipc.Keeper {
		return s.keys.Connect(fd)
	}
	return s.broker.Connect(service, fd)
}

// queueConn serves a connection from the dispatcher.
func (s *server) queueConn(fd int, m *ipc.Connection) {
	s.openConns.Add(1)
	s.tracker.track(m.ID)
	c, err := clientconn.New(fd, m, s.stall)
	if err != nil {
		slog.Warn("connection not usable", "error", err)
		s.closeFunc(m.ID)()
		return
	}
	c.Counts, c.Closed = s.counts, s.closeFunc(m.ID)
	if !m.TLS {
		s.servePlain(c)
		return
	}
	config := s.keys.TLS()
	if config == nil {
		slog.Error("https connection closed", "error", "no certificate loaded")
		_ = c.Close()
		return
	}
	s.tracker.setConn(m.ID, c, nil)
	go s.handshake(c, tls.Server(c, config), s.http1.HeadTimeout)
}

// arrivalGrace is how long a draining worker waits for a request that is
// arriving. Otherwise its client would have to retry.
const arrivalGrace = 500 * time.Millisecond

// shutdown answers the requests in progress, closes idle connections, and ends
// the worker.
func (s *server) shutdown() {
	draining.Store(true)
	s.stopWaiting("the gateway stops")
	s.cancelHandshakes()
	ctx, cancel := context.WithTimeout(context.Background(), s.drain)
	defer cancel()
	http2Done := make(chan error, 1)
	go func() { http2Done <- s.http2.Shutdown(ctx) }()
	closed := make(chan struct{})
	go func() { s.openConns.Wait(); close(closed) }()
	s.http1.Drain()
	select {
	case <-closed:
	case <-time.After(s.arrivalGrace):
	}
	s.http1.StopReading()
	select {
	case <-closed:
	case <-ctx.Done():
	}
	if err := errors.Join(ctx.Err(), <-http2Done); err != nil {
		slog.Warn("unfinished requests abandoned", "limit", s.drain)
		s.http1.Close()
		_ = s.http2.Close()
	}
	s.exit <- 0
}
