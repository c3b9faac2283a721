package worker

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"schedrestd/gateway/worker/broker"
	"schedrestd/gateway/worker/conns"
	"schedrestd/gateway/worker/count"
	"schedrestd/gateway/worker/http1server"
	"schedrestd/gateway/worker/http2server"
	"schedrestd/gateway/worker/keys"
	"schedrestd/gateway/worker/limiter"
	"schedrestd/gateway/worker/meter"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// A server is a worker that is ready to serve. It joins the parts of a worker:
// the dispatcher's messages go to the part that they are for, and connections
// from the dispatcher to http1server or http2server. Package conns owns the
// state of the connections.
type server struct {
	channel     *ipc.Channel
	report      func(ipc.Message) error // sends what the table reports to the dispatcher
	limits      work.Limits
	table       *conns.Table
	limiter     *limiter.Limiter
	http1       *http1server.Server
	http2       *http2server.Server
	keys        *keys.Keys
	broker      *broker.Broker
	counts      *count.Counters
	auditCounts *broker.AuditCounts
	handler     Handler

	arrivalGrace time.Duration // see the constants
	idleGrace    time.Duration
	inetd        bool
	refused      *semaphore.Semaphore[struct{}] // refused connections that are not closed yet
	exit         chan int

	handshakeLimit time.Duration
}

func newServer(channel *ipc.Channel, setup *work.Setup, handler Handler, k *keys.Keys, b *broker.Broker) *server {
	l := setup.Limits
	s := &server{
		channel:        channel,
		report:         func(m ipc.Message) error { return channel.Send(m) },
		limits:         l,
		keys:           k,
		broker:         b,
		inetd:          setup.Inetd,
		handler:        handler,
		arrivalGrace:   arrivalGrace,
		idleGrace:      idleGrace,
		refused:        semaphore.New[struct{}](limit.RefusedConns),
		handshakeLimit: l.ReadHeader,
		counts:         new(count.Counters),
		auditCounts:    new(broker.AuditCounts),
		exit:           make(chan int, 2),
	}
	if b != nil {
		s.auditCounts = b.AuditCounts()
	}
	s.table = conns.NewTable(setup.Admission, s.counts, func(m ipc.Message) error { return s.report(m) })
	s.limiter = limiter.New(limiter.Config{
		Setup:   setup,
		Rules:   tokenRules(*setup),
		Table:   s.table,
		Counts:  s.counts,
		Handler: handler,
		Refuse:  handler.ServeError,
		Expired: k.Authenticator().IsOutOfDate,
	})
	counted := meter.CountRequests(s.limiter)
	if m := meter.Process(); m != nil {
		m.Include(s.counts, s.auditCounts)
	}
	s.http1 = &http1server.Server{
		Handler:     counted,
		Refuse:      handler.ServeError,
		HeadTimeout: l.ReadHeader,
		IdleTimeout: l.Idle,
		MaxHead:     int(l.Header),
		MaxBody:     int64(l.Body),
		Interactive: setup.Inetd,
	}
	s.http2 = http2server.New(http2server.Options{
		Handler:     counted,
		Log:         s.logRefused,
		HeadTimeout: l.ReadHeader,
		IdleTimeout: l.Idle,
		MaxHead:     int(l.Header),
		Requests:    int(setup.Requests),
	})
	return s
}

// logRefused logs a line of net/http.
func (s *server) logRefused(line string) {
	if s.table.MayLog() {
		slog.Warn(strings.TrimSpace(line))
	}
}

// closed records that a connection is closed. In inetd mode, it also ends the
// worker with the status.
func (s *server) closed(c *conns.Conn, status int) {
	c.Closed()
	if s.inetd {
		s.exit <- status
	}
}

// retire makes each connection close after its next answer, and ends the worker
// when all connections are closed.
func (s *server) retire() {
	s.keys.Retire()
	s.table.Retire()
	s.handler.StopWaiting("the gateway has new settings")
	go func() {
		s.table.Wait()
		s.exit <- 0
	}()
}

// A draining worker closes connections without a request after these times (see
// conns.Table.Drain). A client that has just connected is about to send a
// request: with TLS 1.3 it does so before it can know that the handshake has
// succeeded.
const (
	arrivalGrace  = 5 * time.Second // for the first request, and for the rest of a request
	idleGrace     = 500 * time.Millisecond
	drainInterval = 50 * time.Millisecond // how often it looks for connections to close
)

// shutdown answers the requests in progress, closes idle connections, and ends
// the worker.
func (s *server) shutdown() {
	draining.Store(true)
	s.handler.StopWaiting("the gateway stops")
	ctx, cancel := context.WithTimeout(context.Background(), s.limits.Drain)
	defer cancel()
	http2Done := make(chan error, 1)
	// Shutdown closes idle connections at once, and those that are still in their
	// TLS handshake when it ends.
	stopHTTP2 := sync.OnceFunc(func() { go func() { http2Done <- s.http2.Shutdown(ctx) }() })
	time.AfterFunc(s.idleGrace, stopHTTP2)
	closed := make(chan struct{})
	go func() { s.table.Wait(); close(closed) }()
	tick, late := time.NewTicker(drainInterval), time.After(s.arrivalGrace)
	defer tick.Stop()
	for open := true; open; {
		s.table.Drain(s.idleGrace, s.arrivalGrace)
		select {
		case <-tick.C:
		case <-late:
			s.table.StopReading()
		case <-closed:
			open = false
		case <-ctx.Done():
			open = false
		}
	}
	stopHTTP2()
	if err := errors.Join(ctx.Err(), <-http2Done); err != nil {
		slog.Warn("unfinished requests abandoned", "limit", s.limits.Drain)
		s.table.Close()
		_ = s.http2.Close()
	}
	s.exit <- 0
}
